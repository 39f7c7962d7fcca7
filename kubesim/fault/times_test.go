package fault

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestTimesAsNumbers proves that the moment at which something was made is not compared, be it a number or a part of a name.
func TestTimesAsNumbers(t *testing.T) {
	a := configMap("a")
	r := Explore(t, Scenario{
		Name: "times", Steps: []Step{Create(a), Merge(a, `{"data":{"x":"1"}}`)}, Races: []Step{},
		Operator: Operator{SetUp: configMaps(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
			if cm.Name != "a" {
				return nil
			}
			var made corev1.SecretList
			if err := c.List(ctx, &made); err != nil || len(made.Items) > 0 {
				return err
			}
			now := time.Now()
			return c.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("a-", now.Unix()), OwnerReferences: []metav1.OwnerReference{
					{APIVersion: "v1", Kind: "ConfigMap", Name: cm.Name, UID: cm.UID},
				}},
				StringData: map[string]string{"at": fmt.Sprint(now.Unix()), "nanos": fmt.Sprint(now.UnixNano())},
			})
		})},
	}, Only(Crashes, Faults, Breaks))
	for _, f := range r.Findings {
		t.Error(f.Text)
	}
	if len(r.Masked) != 2 {
		t.Errorf("masked are %q, want the two numbers", r.Masked)
	}
}
