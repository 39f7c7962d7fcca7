package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
)

// confirm reads the object from the API server and requires that it agrees with the copy at hand
// about what may be done to which resource. A change of labels or status is no reason to start
// over.
func (p *pass) confirm(ctx context.Context) error {
	if p.run.Vanished() { // the loop has read the object from the API server
		p.track.fresh = true
		return nil
	}
	now, _ := p.obj.DeepCopyObject().(Object)
	err := p.run.Live().Get(ctx, client.ObjectKeyFromObject(p.obj), now)
	switch {
	case apierrors.IsNotFound(err):
		return p.outdated(errors.New("the object is gone"))
	case err != nil:
		return fmt.Errorf("confirm that the object is no old copy: %w", err)
	case !p.current(now):
		return p.outdated(errors.New("the copy at hand is older than the object"))
	}
	p.track.fresh = true
	return nil
}

// current reports whether the copy at hand still asks for what the object asks for now.
func (p *pass) current(now Object) bool {
	annotations, recorded := now.GetAnnotations(), p.obj.GetAnnotations()[api.AnnotationExternal]
	settings := readSettings(annotations, time.Now(), p.settings.limits)
	deleting := !now.GetDeletionTimestamp().IsZero()
	return now.GetUID() == p.obj.GetUID() && annotations[api.AnnotationExternal] == recorded &&
		deleting != p.obj.GetDeletionTimestamp().IsZero() && (deleting || now.GetGeneration() == p.obj.GetGeneration()) &&
		settings.pause == p.settings.pause && settings.policy == p.settings.policy && settings.from == p.settings.from &&
		annotations[api.AnnotationEndpoint] == p.obj.GetAnnotations()[api.AnnotationEndpoint]
}
