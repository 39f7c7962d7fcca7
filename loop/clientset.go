package loop

import (
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
)

// clientset is the controller's only clientset. It is made when an author first asks for it.
type clientset struct {
	make func() (kubernetes.Interface, error)

	mu   sync.Mutex
	made kubernetes.Interface
	// reasons are those that were logged.
	reasons map[string]bool
	// full: another reason than those was given, and the log says so.
	full bool
}

// mostReasons is how many reasons are remembered; an author who makes them up in each pass fills no memory.
const mostReasons = 16

// get is [Run.Clientset].
func (c *clientset) get(log logr.Logger, why string) (kubernetes.Interface, error) {
	switch {
	case why == "":
		return nil, errors.New("Run.Clientset needs a reason, for example \"reads the log of a Pod\"; use Run.Client for all else")
	case c.make == nil:
		return nil, errors.New("a pass without a manager has no clientset; give the Reconciler a function that makes one, and replace that in the test")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.reasons[why] || c.full:
	case len(c.reasons) >= mostReasons:
		c.full = true
		log.Info("a clientset is used for more reasons beside the client; further reasons are not logged", "logged", len(c.reasons))
	default:
		if c.reasons == nil {
			c.reasons = map[string]bool{}
		}
		c.reasons[why] = true
		log.Info("a clientset is used beside the client", "why", why)
	}
	if c.made != nil {
		return c.made, nil
	}
	made, err := c.make()
	if err != nil {
		return nil, fmt.Errorf("make a clientset: %w", err)
	}
	c.made = made
	return made, nil
}
