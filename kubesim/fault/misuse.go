package fault

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// misuse is a mistake in a scenario because of which less would be tried, or believed, than its
// author thinks. It ends an exploration whenever it shows.
type misuse string

func (m misuse) Error() string { return string(m) }

// checkExternal finds mistakes in the outside of a new world.
func (p *play) checkExternal() error {
	_, copies := p.external.(Cloner)
	switch made := p.scenario.ExternalAPI != nil; {
	case made && p.external == nil:
		return misuse("ExternalAPI returned nil; leave it out if there is nothing outside")
	case p.scenario.Lag > 0 && !made:
		return misuse("Lag is set, but there is no ExternalAPI whose reads could lag")
	case p.scenario.Lag > 0 && !copies:
		return misuse(fmt.Sprintf("Lag is set, but no read can lag behind a %T: it needs a method Clone", p.external))
	}
	return nil
}

// isSame tells whether two outsides are one, so that a world begins with what is left of another.
func isSame(a, b ExternalAPI) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.Kind() == reflect.Pointer && y.Kind() == reflect.Pointer && x.Pointer() == y.Pointer() && x.Type().Elem().Size() > 0
}

// checkCopy holds what a copy of the outside shows at the moment it was made for against what the
// outside showed then.
func (p *play) checkCopy(then []history.Resource) error {
	now := p.resources()
	for _, t := range then {
		if !slices.Contains(now, t) {
			return misuse(fmt.Sprintf("the Clone of a %T does not keep %s %s as it was when it was made; copy what is behind maps, slices and pointers", p.external, t.Kind, t.ID))
		}
	}
	for _, t := range now {
		if !slices.Contains(then, t) {
			return misuse(fmt.Sprintf("the Clone of a %T shows %s %s, which came later; copy what is behind maps, slices and pointers", p.external, t.Kind, t.ID))
		}
	}
	return nil
}

// externalAs returns what a call or step named what is to look at.
func externalAs[O ExternalAPI](o ExternalAPI, what string) (O, error) {
	as, ok := o.(O)
	switch {
	case ok:
		return as, nil
	case o == nil:
		return as, misuse(fmt.Sprintf("%q wants the outside as %v, but the scenario has no ExternalAPI", what, reflect.TypeFor[O]()))
	}
	return as, misuse(fmt.Sprintf("%q wants the outside as %v, but the scenario's ExternalAPI is a %T", what, reflect.TypeFor[O](), o))
}

// checkShared finds names in Shared that are no kinds: neither of those of the beginning nor of a
// CRD that came in the undisturbed run.
func (e *explorer) checkShared(r *history.Run) error {
	for _, name := range e.scenario.Shared {
		named := schema.ParseGroupResource(name)
		known, err := e.mapper.ResourceFor(named.WithVersion(""))
		came := slices.ContainsFunc(r.Changes, func(c history.Change) bool {
			return c.Group == apiextensionsv1.GroupName && c.Resource == "customresourcedefinitions" && c.Name == name
		})
		if !came && (err != nil || known.GroupResource() != named) { // a mapper takes singulars and beginnings of groups, too
			return misuse(fmt.Sprintf("Shared names %q, which is no kind of this world; write the plural and the group, as configmaps or deployments.apps", name))
		}
	}
	return nil
}

// withRefusals adds to an error what the operator was not allowed to do, which is the most likely
// cause of it.
func (e *explorer) withRefusals(err error) error {
	if e.roles == nil {
		return err
	}
	denied := e.roles.Access(e.audit.Uses()).Denied
	if len(denied) == 0 {
		return err
	}
	return fmt.Errorf("%w; the operator was refused: %s (what it may do is in the roles of RBAC that a binding there names, or in all of them if there is none)",
		err, strings.Join(denied, ", "))
}
