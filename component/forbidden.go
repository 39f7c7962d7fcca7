package component

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/component/internal/target"
)

// identity is the one that a deletion uses.
func (p *pass[T]) identity(kubeconfig []byte) target.Identity {
	id := target.Identity{Kubeconfig: kubeconfig}
	if !p.placements.isItself(p.obj.GetUID()) {
		id.User, id.Groups = p.place.user, p.place.groups
	}
	return id
}

// refused is what becomes of the error of a deletion. If an impersonated user is not allowed to delete, it is
// likely that its role binding was deleted together with the component, and will not come back.
func (p *pass[T]) refused(s *situation, err error) error {
	uid := p.obj.GetUID()
	if !apierrors.IsForbidden(err) || p.place.user == "" && len(p.place.groups) == 0 || p.placements.isItself(uid) {
		return err
	}
	who := p.place.user
	if who == "" {
		who = "a member of " + strings.Join(p.place.groups, ", ")
	}
	if !p.options.DeleteAsOperator {
		return fmt.Errorf("%w; the dependents are deleted as %s, whose role binding may have been deleted with the namespace: "+
			"create it again, or set DeleteAsOperator in the options of the operator", err, who)
	}
	p.placements.beItself(uid)
	p.warn("DeletedAsOperator", []string{"the dependents are deleted without impersonation: " + who + " is not allowed to delete them any more"})
	s.Ready, s.Again = false, soon
	s.Waiting = "the dependents are deleted without impersonation, because " + who + " is not allowed to delete them"
	return nil
}

// isItself reports whether the dependents of a component are deleted without impersonation. A new process finds
// that out again.
func (p *placements) isItself(component types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.itself[component]
}

func (p *placements) beItself(component types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.itself == nil {
		p.itself = map[types.UID]bool{}
	}
	p.itself[component] = true
}
