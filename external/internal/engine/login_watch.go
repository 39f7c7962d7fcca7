package engine

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trigger"
)

// LoginKind is a kind of objects that clients are made from.
type LoginKind struct {
	DependencyKind

	// Keep: they stay as long as an object names them.
	Keep bool
	// Then are the kinds of what they refer to in turn.
	Then []trigger.Then
}

// Logins returns the kinds whose objects wake those whose clients are made from them.
func (e *Engine) Logins() []LoginKind {
	by := e.options.Connector
	switch {
	case by == nil:
		return nil
	case by.Config != nil:
		return []LoginKind{e.configKind(by)}
	}
	var out []LoginKind
	for _, kind := range e.referred(e.driver.New()) {
		out = append(out, LoginKind{DependencyKind: DependencyKind{To: metadataOf(kind), Names: func(obj Object) []objectKey {
			return namesIn(by.Credentials(copyOf(obj)), kind, obj.GetNamespace())
		}}})
	}
	return out
}

func (e *Engine) configKind(by *Connector) LoginKind {
	k := LoginKind{Keep: true}
	k.To = by.Config.To
	k.Names = func(obj Object) []objectKey {
		key, err := by.Config.Of(copyOf(obj))
		if err != nil || key.Name == "" {
			return nil
		}
		// Whether the kind is namespaced is not known here.
		names := []objectKey{key, {Name: key.Name}}
		if key.Namespace == "" && obj.GetNamespace() != "" {
			names[0].Namespace = obj.GetNamespace()
		}
		return slices.Compact(names)
	}
	empty, _ := by.Config.To.DeepCopyObject().(client.Object)
	for _, kind := range e.referred(empty) {
		k.Then = append(k.Then, trigger.Then{To: metadataOf(kind), Names: func(from client.Object) []objectKey {
			namespace := from.GetNamespace()
			if namespace == "" {
				namespace = by.SecretNamespace
			}
			copied, _ := from.DeepCopyObject().(client.Object)
			return namesIn(by.Credentials(copied), kind, namespace)
		}})
	}
	return k
}

// referred returns the kinds to which an empty object refers.
func (e *Engine) referred(empty client.Object) []string {
	by := e.options.Connector
	if by.Credentials == nil {
		return nil
	}
	refs, err := guarded("Credentials", func() ([]api.Reference, error) { return by.Credentials(empty), nil })
	if err != nil {
		e.problem = fmt.Errorf("tell to what a %T refers: %w; let Credentials answer for an empty object", empty, err)
	}
	var kinds []string
	for _, ref := range refs {
		if ref == nil {
			continue
		}
		if kind := kindOfReference(ref); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// kindOfReference returns the kind to which a reference leads, which may be a nil pointer.
func kindOfReference(ref api.Reference) string {
	switch ref.(type) {
	case *api.ConfigMapReference, *api.ConfigMapKeyReference:
		return "ConfigMap"
	default:
		return "Secret"
	}
}

func namesIn(refs []api.Reference, kind, namespace string) []objectKey {
	var names []objectKey
	for _, ref := range filled(refs) {
		if k, name := ref.Refers(); k == kind {
			names = append(names, objectKey{Namespace: namespace, Name: name})
		}
	}
	return names
}

// OutputNeeds returns the permissions to write connection details.
func (e *Engine) OutputNeeds(kind *DependencyKind) []loop.Need {
	if kind == nil {
		return nil
	}
	return []loop.Need{{GroupVersionKind: kind.To.GetObjectKind().GroupVersionKind(), Verbs: []string{"get", "create", "patch"}}}
}

// LoginNeeds returns the permissions to read what clients are made from, besides those to watch it.
func (e *Engine) LoginNeeds() []loop.Need {
	var needs []loop.Need
	if by := e.options.Connector; by != nil && by.Credentials != nil {
		from := client.Object(e.driver.New())
		if by.Config != nil {
			from, _ = by.Config.To.DeepCopyObject().(client.Object)
		}
		for _, kind := range e.referred(from) {
			needs = append(needs, loop.Need{GroupVersionKind: corev1.SchemeGroupVersion.WithKind(kind), Verbs: []string{"get"}})
		}
	}
	return needs
}
