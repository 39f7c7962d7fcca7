package operator

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/loop"
)

// isRecord reports whether a need is the permission to write records. No such resource is served;
// the permission is what the policy below checks.
func isRecord(n loop.Need) bool { return n.GroupKind() == api.RecordKind() }

// recordPolicy returns a policy that prevents everybody except the operator from writing records on
// existing objects. A new object may have one: it is a copy or comes from a backup, and the
// operator checks its record.
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
					Message: "annotation " + api.AnnotationExternal + " is the record by which the operator finds the external resource again, " +
						"and only the operator may add, change or remove it; send the object with its present record " +
						"(kubectl apply keeps it, kubectl replace does not), or ask someone who may update records.trimtab.dev in the whole cluster",
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

// recordOf returns a CEL expression for the record of an object.
func recordOf(object string) string {
	return object + `.metadata.?annotations[?"` + api.AnnotationExternal + `"].orValue("")`
}

// recordRules returns a rule for each group that has kinds with records.
func (d *design) recordRules() []admissionv1.NamedRuleWithOperations {
	var rules []admissionv1.NamedRuleWithOperations
	for _, gvk := range d.recorded {
		gvr, err := d.resources.of(gvk)
		if err != nil {
			continue // reported with the roles, which name the kind too
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
