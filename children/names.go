package children

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
)

// names are the keys of labels, annotations and finalizers of one controller.
type names struct{ prefix string }

// namesOf returns the names of a controller of a kind. name is the controller's.
func namesOf(name string, kind schema.GroupKind) names {
	if name == "" {
		name = strings.ToLower(kind.Kind)
	}
	return names{strings.TrimSuffix(name+"."+kind.Group, ".")}
}

// owner is the label with the UID of the owner, and the annotation with its name on a child without owner reference.
func (n names) owner() string { return n.prefix + "/owner" }

// child is the label with the name of the child.
func (n names) child() string { return n.prefix + "/child" }

// digest is the annotation that identifies what was applied last.
func (n names) digest() string { return n.prefix + "/digest" }

// finalizer is on protected children, and on owners that need one.
func (n names) finalizer() string { return n.prefix + "/children" }

// reference is the value of the annotation: who owns a child, and which object it is. A copy of the child under another
// name is no child.
func reference(owner, child types.NamespacedName) string {
	return owner.String() + " " + child.String()
}

// referred returns the owner that the annotation of a child names.
func (n names) referred(obj client.Object) (types.NamespacedName, bool) {
	owner, self, ok := strings.Cut(obj.GetAnnotations()[n.owner()], " ")
	namespace, name, split := strings.Cut(owner, "/")
	if !ok || !split || self != client.ObjectKeyFromObject(obj).String() {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, true
}

// claims returns who holds an object that an owner wants as a child.
func (n names) claims(obj client.Object, owner owning, policy api.AdoptionPolicy) claims {
	c := claims{
		label: obj.GetLabels()[n.owner()], controller: metav1.GetControllerOf(obj), helm: api.HelmReleaseOf(obj.GetAnnotations()),
		owner: owner.NamespacedName, uid: owner.uid, policy: policy,
	}
	c.referred, _ = n.referred(obj)
	c.foreign = n.foreign(obj)
	return c
}

// foreign returns the owner of an object that is a child of another controller, or that a component has, by the
// annotation of that; empty if there is none. A copy under another name is neither.
func (n names) foreign(obj client.Object) string {
	annotations := obj.GetAnnotations()
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		prefix, what, _ := strings.Cut(key, "/")
		if prefix == n.prefix {
			continue
		}
		owner, self, _ := strings.Cut(annotations[key], " ")
		switch what {
		case "owner":
			if _, ok := (names{prefix}).referred(obj); ok {
				return owner + ", by annotation " + key
			}
		case "owner-id": // see package component
			of := obj.GetObjectKind().GroupVersionKind()
			item := api.InventoryItem{Group: of.Group, Kind: of.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
			if self == item.Key() {
				owner, _, _ = strings.Cut(owner, "@")
				return owner + ", by annotation " + key
			}
		}
	}
	return ""
}

// belongs reports whether an object is a child of the owner with that UID, beyond doubt.
func (n names) belongs(obj client.Object, owner types.UID) bool {
	_, referred := n.referred(obj)
	return obj.GetLabels()[n.owner()] == string(owner) && (controlled(obj, owner) || referred)
}

// controlled reports whether an owner reference says that the owner with that UID controls an object.
func controlled(obj client.Object, owner types.UID) bool {
	c := metav1.GetControllerOfNoCopy(obj)
	return c != nil && c.UID == owner
}
