package loop

import (
	"context"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/trigger"
)

// nothing is an author that has nothing to do.
type nothing[T client.Object] struct{}

func (nothing[T]) Reconcile(context.Context, *Run[T]) Outcome { return Done() }

// TestRevisionIsChecked: a revision without which a restart would miss something is refused at the start.
func TestRevisionIsChecked(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"embed it in the status of *probe.Plain, or leave Revision empty": New(nothing[*probe.Plain]{}, Options[*probe.Plain]{Revision: "1"}).check("plain"),
		"Revision cannot be combined with EveryChange":                    New(nothing[*probe.Probe]{}, Options[*probe.Probe]{Revision: "1", Generation: EveryChange}).check("probe"),
		"source 0 of Options.Sources, a trigger.External[*": New(nothing[*probe.Probe]{}, Options[*probe.Probe]{
			Revision: "1", Sources: []trigger.Source[*probe.Probe]{trigger.External[*probe.Probe]{Waker: &trigger.Waker{}}},
		}).check("probe"),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", err, want)
		}
	}
}
