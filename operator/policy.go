package operator

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/loop"
)

// isRecord tells the need for the right to write records. Nobody serves such a kind: the
// right is what the policy below asks for.
func isRecord(n loop.Need) bool { return n.GroupKind() == api.RecordKind() }

// recordPolicy is what keeps everybody but the operator from writing the records on living
// objects. A create may carry one: that is a copy, or a restore, and the operator judges it.
func (d *design) recordPolicy() []client.Object {
	if len(d.recorded) == 0 {
		return nil
	}
	meta := metav1.ObjectMeta{Name: d.options.Name + "-records", Labels: map[string]string{"app.kubernetes.io/name": d.options.Name}}
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: kind}
	}
	return []client.Object{
		&admissionv1.ValidatingAdmissionPolicy{
			TypeMeta: kind("ValidatingAdmissionPolicy"), ObjectMeta: meta,
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				FailurePolicy:    new(admissionv1.Fail),
				MatchConstraints: &admissionv1.MatchResources{ResourceRules: d.recordRules()},
				Validations: []admissionv1.Validation{{
					Expression: recordOf("object") + " == " + recordOf("oldObject") +
						` || authorizer.group("` + api.RecordKind().Group + `").resource("records").check("update").allowed()`,
					Message: "annotation " + api.AnnotationExternal + " is the record by which the operator finds the thing outside again, " +
						"and nobody else adds, changes or removes it; send the object with the record that it has " +
						"(kubectl apply keeps it, kubectl replace does not), or ask somebody who may update records.trimtab.dev in the whole cluster",
					Reason: new(metav1.StatusReasonForbidden),
				}},
			},
		},
		&admissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta: kind("ValidatingAdmissionPolicyBinding"), ObjectMeta: meta,
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: meta.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			},
		},
	}
}

// recordOf is the record of an object, in CEL.
func recordOf(object string) string {
	return object + `.metadata.?annotations[?"` + api.AnnotationExternal + `"].orValue("")`
}

// recordRules are the kinds that have records, one rule for each group.
func (d *design) recordRules() []admissionv1.NamedRuleWithOperations {
	var rules []admissionv1.NamedRuleWithOperations
	for _, gvk := range d.recorded {
		gvr, err := d.resources.of(gvk)
		if err != nil {
			continue // told with the roles, which name the kind too
		}
		i := slices.IndexFunc(rules, func(r admissionv1.NamedRuleWithOperations) bool { return r.APIGroups[0] == gvr.Group })
		if i >= 0 {
			rules[i].Resources = append(rules[i].Resources, gvr.Resource)
			continue
		}
		rules = append(rules, admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{gvr.Group}, APIVersions: []string{"*"}, Resources: []string{gvr.Resource}},
		}})
	}
	return rules
}
