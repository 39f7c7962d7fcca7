package children

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// judge returns whose an object is for the owner with that key and UID. why says whose it is if it is not ours, as the
// end of a sentence about it.
func (n names) judge(obj client.Object, owner types.NamespacedName, uid types.UID, policy api.AdoptionPolicy) (is ownership, why string) {
	label, controller := obj.GetLabels()[n.owner()], metav1.GetControllerOfNoCopy(obj)
	referred, isReferred := n.referred(obj)
	switch {
	case label == string(uid) && (controller == nil || controller.UID == uid):
		return ours, ""
	case controller != nil && controller.UID != uid:
		why = fmt.Sprintf("belongs to %s %s", controller.Kind, controller.Name)
	case api.HelmReleaseOf(obj.GetAnnotations()) != "":
		why = "belongs to Helm release " + api.HelmReleaseOf(obj.GetAnnotations())
	case label != "" && isReferred && referred != owner:
		why = "belongs to " + referred.String()
	}
	switch {
	case policy == api.AdoptionPolicyNever && why == "":
		return theirs, "was created by somebody else"
	case policy != api.AdoptionPolicyAlways && why != "", policy == api.AdoptionPolicyNever:
		return theirs, why
	case controller != nil && controller.UID != uid:
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
