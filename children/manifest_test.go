package children

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWithoutEmpty: an empty struct says nothing if its type is to leave it out; what is set, and a pointer, do.
func TestWithoutEmpty(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why  string
		obj  client.Object
		want map[string]any
	}{
		"port":     {"the API server chooses it", &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}},
		"set port": {"it is asked for", &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}}}, map[string]any{"ports": []any{map[string]any{"port": int64(80), "targetPort": int64(8080)}}}},
		"pointer": {
			"a volume is of the kind that is there", &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}}},
			map[string]any{"volumes": []any{map[string]any{"name": "v", "emptyDir": map[string]any{}}}, "containers": nil},
		},
		"resources": {"the API server adds them", &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}, map[string]any{"containers": []any{map[string]any{"name": "c"}}}},
		"metadata":  {"names are kept", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"}}, map[string]any{"nodeName": "n", "containers": nil}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tt.obj)
			if err != nil {
				t.Fatal(err)
			}
			withoutEmpty(reflect.ValueOf(tt.obj), content)
			if diff := cmp.Diff(tt.want, content["spec"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
			if meta, _ := content["metadata"].(map[string]any); tt.obj.GetName() != "" && meta["name"] != tt.obj.GetName() {
				t.Errorf("%s: metadata %v", tt.why, content["metadata"])
			}
		})
	}
}
