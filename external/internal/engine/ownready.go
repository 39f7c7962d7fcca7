package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
)

// statusObject is an object of a kind whose status trimtab writes.
type statusObject interface {
	client.Object
	api.Object
}

// ownReady returns condition Ready of obj if one of our operators wrote it last, nil otherwise.
// Whoever may write status can write the condition, but the API server records who did in
// managedFields. Caches usually strip those; the object is then read from the API server itself.
func (e *Engine) ownReady(ctx context.Context, live client.Reader, obj statusObject) (*metav1.Condition, error) {
	if len(obj.GetManagedFields()) == 0 {
		now, ok := obj.DeepCopyObject().(statusObject)
		if !ok {
			return nil, errors.New("the copy of an object is of another type; this is a bug in its DeepCopyObject")
		}
		err := live.Get(ctx, client.ObjectKeyFromObject(obj), now)
		switch {
		case apierrors.IsNotFound(err), err == nil && now.GetUID() != obj.GetUID():
			return nil, nil
		case err != nil:
			return nil, err
		}
		obj = now
	}
	if !readyIsOurs(obj.GetManagedFields()) {
		return nil, nil
	}
	return meta.FindStatusCondition(obj.TrimtabStatus().Conditions, api.ConditionReady), nil
}

// ourManagers is the prefix of the field managers under which package loop writes.
const ourManagers = "trimtab-"

// readyIsOurs reports whether a field manager of ours owns status and generation of condition
// Ready. The API server takes a field from its owner when somebody else changes it.
func readyIsOurs(entries []metav1.ManagedFieldsEntry) bool {
	var status, generation bool
	for _, entry := range entries {
		if entry.Subresource != "status" || !strings.HasPrefix(entry.Manager, ourManagers) || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Status struct {
				Conditions map[string]map[string]any `json:"f:conditions"`
			} `json:"f:status"`
		}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		ready := fields.Status.Conditions[`k:{"type":"`+api.ConditionReady+`"}`]
		_, owned := ready["f:status"]
		_, dated := ready["f:observedGeneration"]
		status, generation = status || owned, generation || dated
	}
	return status && generation
}

// verifiedVersions are the versions of dependencies whose Ready is known to be written by their operator,
// so that each is checked once. The zero value is empty.
type verifiedVersions struct {
	mu       sync.Mutex
	versions map[types.UID]string
}

// maxVerified bounds them; a forgotten one is checked again.
const maxVerified = 100_000

func (v *verifiedVersions) has(uid types.UID, version string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.versions[uid] == version
}

func (v *verifiedVersions) add(uid types.UID, version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.versions == nil || len(v.versions) >= maxVerified {
		v.versions = map[types.UID]string{}
	}
	v.versions[uid] = version
}
