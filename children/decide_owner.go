package children

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/api"
)

// ownership is whose an object is that has the name of a child.
type ownership int

const (
	ours ownership = iota
	adopted
	seized // adopted from another controller, whose owner reference goes
	theirs
)

// claims are who holds an object, and who asks.
type claims struct {
	// label is the UID of the owner of which it was a child last, and referred the name, if an annotation has it.
	label    string
	referred types.NamespacedName
	// foreign is who has it by the annotation of another controller, empty if nobody has.
	foreign string
	// controller is its controller by owner reference, nil if it has none; helm the release that it belongs to.
	controller *metav1.OwnerReference
	helm       string
	// owner and uid are those of the object that wants it as a child.
	owner  types.NamespacedName
	uid    types.UID
	policy api.AdoptionPolicy
}

// judge returns whose an object is. why says whose it is if it is not ours, as the end of a sentence about it.
func judge(c claims) (is ownership, why string) {
	others := c.controller != nil && c.controller.UID != c.uid
	switch {
	case !others && (c.controller != nil || c.label == string(c.uid)):
		return ours, ""
	case others:
		why = fmt.Sprintf("belongs to %s %s", c.controller.Kind, c.controller.Name)
	case c.helm != "":
		why = "belongs to Helm release " + c.helm
	case c.foreign != "":
		why = "belongs to " + c.foreign
	case c.label != "" && c.referred.Name != "" && c.referred != c.owner:
		why = "belongs to " + c.referred.String()
	}
	switch {
	case c.policy == api.AdoptionPolicyNever && why == "":
		return theirs, "was created by somebody else"
	case c.policy != api.AdoptionPolicyAlways && why != "", c.policy == api.AdoptionPolicyNever:
		return theirs, why
	case others:
		return seized, ""
	}
	return adopted, ""
}

// wayOut says what users can do about an object that is not ours.
func wayOut(policy api.AdoptionPolicy) string {
	if policy == api.AdoptionPolicyNever {
		return "delete or rename it"
	}
	return "delete or rename it, or let the operator adopt it with children.Child.Adopt"
}
