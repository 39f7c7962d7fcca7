package apply

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestInvalid: the words of API servers without Go syntax, and what to do. They are those of Kubernetes 1.37.
func TestInvalid(t *testing.T) {
	invalid := func(causes ...metav1.StatusCause) metav1.Status {
		return metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: fmt.Sprint(causes), Details: &metav1.StatusDetails{Causes: causes}}
	}
	typed := func(text string) metav1.Status {
		return metav1.Status{Code: http.StatusInternalServerError, Message: "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): " + text}
	}
	tests := map[string]struct {
		why    string
		status metav1.Status
		wrap   string
		want   string
	}{
		"a variable twice": {
			"the key says which", typed(`.spec.template.spec.containers[name="a"].env: duplicate entries for key [name="X"]`), "",
			`spec.template.spec.containers[name="a"].env: duplicate entries for key [name="X"]; remove one of the two, or set op/update-policy: replace, with which the last one counts`,
		},
		"a number": {
			"server-side apply shows a value of Go", typed(`.data.port: expected string, got &value.valueUnstructured{Value:8080}`), "",
			"data.port: expected string, got 8080; quote the value",
		},
		"a map": {
			"another form of the same", typed(`.spec.template.spec.containers: expected list, got &{map[a:b]}`), "",
			"spec.template.spec.containers: expected list, got map; change the manifest",
		},
		"a map where a text belongs": {
			"a forgotten |", typed(`.data.cfg: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":"b"}}`), "",
			"data.cfg: expected string, got map; write the value as text, for example after a |",
		},
		"several at once": {
			"each has a line, in any order", typed("errors:\n  .spec.b: field not declared in schema\n  .data.a: expected string, got &value.valueUnstructured{Value:1}"), "",
			"data.a: expected string, got 1; spec.b: field not declared in schema; quote the value; correct the name of the field or remove it",
		},
		"a port that another Service has": {
			"it may be free soon", invalid(metav1.StatusCause{Field: "spec.ports[0].nodePort", Message: "Invalid value: 30080: provided port is already allocated"}), "", "",
		},
		"an unknown field": {
			"a typing error", typed(`.spec.replica: field not declared in schema`), "",
			"spec.replica: field not declared in schema; correct the name of the field or remove it",
		},
		"a number in a create": {
			"the decoder names types of Go",
			metav1.Status{Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: `ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string`},
			"",
			"data: expected string, got number; quote the value",
		},
		"a name": {
			"validation", invalid(metav1.StatusCause{Field: "metadata.name", Message: `Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower case characters`}), "",
			`metadata.name: Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower case characters; rename the object`,
		},
		"an immutable field": {
			"what is wrong comes after a long value", invalid(metav1.StatusCause{Field: "spec.selector", Message: `Invalid value: {"matchLabels":{"a":"b"}}: field is immutable`}), "",
			"spec.selector: field is immutable; undo the change, or set op/immutable-policy: recreate to have the object deleted and created again",
		},
		"an immutable field of what holds data": {
			"deleting it loses the data",
			func() metav1.Status {
				s := invalid(metav1.StatusCause{Field: "spec", Message: "Forbidden: updates to statefulset spec are forbidden"})
				s.Details.Group, s.Details.Kind = "apps", "StatefulSet"
				return s
			}(), "",
			`spec: Forbidden: updates to statefulset spec are forbidden; undo the change, or set op/immutable-policy: recreate and op/accept-data-loss: "true" to have the object deleted with what it contains and created again`,
		},
		"two causes": {
			"in one order", invalid(metav1.StatusCause{Field: "b", Message: "no"}, metav1.StatusCause{Field: "a", Message: "no"}, metav1.StatusCause{Field: "b", Message: "no"}), "",
			"a: no; b: no; change the manifest",
		},
		"a Pod": {
			"the API server shows a difference in Go", invalid(metav1.StatusCause{Field: "spec", Message: "Forbidden: pod updates may not change fields other than `spec.tolerations`\n  core.PodSpec{\n"}), "",
			"spec: Forbidden: pod updates may not change fields other than `spec.tolerations`; undo the change, or set op/immutable-policy: recreate to have the object deleted and created again",
		},
		"wrapped": {
			"who wraps it says what to do", invalid(metav1.StatusCause{Field: "spec", Message: "no"}), "create namespace shop: %w; ask somebody",
			"create namespace shop: spec: no; ask somebody",
		},
		"a conflict": {"it is tried again", metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "it is invalid"}, "", ""},
		"a webhook":  {"its answer may change", metav1.Status{Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: "admission webhook denied the request"}, "", ""},
		"a policy": {
			"it may depend on other objects",
			metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: `configmaps "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`},
			"", "",
		},
		"a webhook that says invalid": {
			"the same",
			metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: `admission webhook "a.b" denied the request: no`},
			"", "",
		},
		"a failure": {"it may pass", metav1.Status{Code: http.StatusInternalServerError, Message: "etcd is away"}, "", ""},
		"another object": {
			"the object was replaced", invalid(metav1.StatusCause{Field: "metadata.uid", Message: "Invalid value"}), "", "",
		},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			var err error = &apierrors.StatusError{ErrStatus: test.status}
			if test.wrap != "" {
				err = fmt.Errorf(test.wrap, err)
			}
			got := ""
			if e := Invalid(err, "op"); e != nil {
				got = e.Error()
			}
			if got != test.want {
				t.Errorf("%s:\n got %s\nwant %s", test.why, got, test.want)
			}
		})
	}
}
