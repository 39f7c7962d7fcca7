package apiserver

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// eventNames renames events that would get the name of another one. client-go's recorders name an event by its object and the
// nanosecond. Simulated time stands still while an operator works, so the second event about an object would be lost. One that
// is the same but for its name and times is sent again, and meets a conflict as on a real server.
type eventNames struct{ *admission.Handler }

func newEventNames() eventNames { return eventNames{admission.NewHandler(admission.Create)} }

var _ admission.MutationInterface = eventNames{}

// recently is how long before it is sent an event may have been recorded.
const recently = 10 * time.Minute

// Admit renames an event.
func (eventNames) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	event, ok := a.GetObject().(*api.Event)
	if !ok {
		return nil
	}
	dot := strings.LastIndexByte(event.Name, '.')
	nanos, err := strconv.ParseInt(event.Name[dot+1:], 16, 64)
	if age := time.Since(time.Unix(0, nanos)); dot < 0 || err != nil || age < 0 || age > recently {
		return nil //nolint:nilerr // the name is not of that form
	}
	for base := event.Name[:dot]; ; nanos++ {
		event.Name = fmt.Sprintf("%s.%x", base, nanos)
		row, taken := store.From(ctx).Row("/events/" + event.Namespace + "/" + event.Name)
		if !taken || isSameEvent(event, row) {
			return nil
		}
	}
}

// isSameEvent reports whether an event says what a stored one does.
func isSameEvent(event *api.Event, row store.Stored) bool {
	old, ok := decodeStored(row).(*corev1.Event)
	return ok && string(old.InvolvedObject.UID) == string(event.InvolvedObject.UID) && old.InvolvedObject.FieldPath == event.InvolvedObject.FieldPath &&
		old.Type == event.Type && old.Reason == event.Reason && old.Message == event.Message && old.Action == event.Action
}
