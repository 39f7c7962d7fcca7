package sandbox

import (
	"context"
	"fmt"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// Actor is a controller of the scenario's that is not under test.
type Actor struct {
	Name string
	// Act changes what is to be changed now, if anything.
	Act func(ctx context.Context, w *World) error
}

// moment is all that may make an actor act.
type moment struct {
	rev   int64
	views int
	at    time.Time
}

func (s *Sandbox) moment() moment {
	return moment{s.DB.Revision(), len(s.record.Run.External), time.Now()}
}

// letActors asks one actor after another until one changes something, and reports whether one did.
func (s *Sandbox) letActors() (bool, error) {
	now := s.moment()
	if now == s.idle {
		return false, nil
	}
	refused := false
	for _, a := range s.Settings.Actors {
		if err := s.unlessRefused(func() error { return a.Act(context.Background(), s.World()) }); err != nil {
			return false, MisuseError(fmt.Sprintf("actor %q failed, which is no fault of the operator: %v", a.Name, err))
		}
		refused = refused || s.refused
		s.record.Mark(now.rev, s.DB.Revision(), a.Name, history.Nobody)
		if s.Observe(history.Nobody) || s.DB.Revision() > now.rev {
			s.LastChange = time.Now()
			return true, nil
		}
	}
	if !refused { // who was refused tries again
		s.idle = now
	}
	return false, nil
}
