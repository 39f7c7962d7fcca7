package fault

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestTwoBugsInOneField proves that a field which two places of an operator write too late, the one that creates its Secret and the
// one that changes it, is two findings.
func TestTwoBugsInOneField(t *testing.T) {
	a := configMap("a")
	a.Data = map[string]string{"size": "1"}
	note := func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
		before := cm.DeepCopy()
		metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "size", cm.Data["size"])
		return c.Patch(ctx, cm, client.MergeFrom(before))
	}
	r := Explore(t, Scenario{
		Name: "noted", Steps: []Step{Create(a), Merge(a, `{"data":{"size":"2"}}`)}, Races: []Step{}, Shared: []string{"configmaps"},
		Operator: Operator{SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
			var all corev1.SecretList
			if err := c.List(ctx, &all); err != nil {
				return 0, err
			}
			if len(all.Items) == 0 {
				s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s", OwnerReferences: []metav1.OwnerReference{
					{APIVersion: "v1", Kind: "ConfigMap", Name: cm.Name, UID: cm.UID},
				}}, Data: map[string][]byte{"size": []byte(cm.Data["size"])}}
				if err := c.Create(ctx, s); err != nil {
					return 0, err
				}
				return 0, note(ctx, c, cm)
			}
			s := &all.Items[0]
			if string(s.Data["size"]) == cm.Data["size"] {
				return 0, nil
			}
			s.Data["size"] = []byte(cm.Data["size"])
			if err := c.Update(ctx, s); err != nil {
				return 0, err
			}
			return 0, note(ctx, c, cm)
		})},
	}, Only(Crashes))
	var tokens, groups []string
	for _, f := range r.Findings {
		if group := f.found.Group(); !slices.Contains(groups, group) {
			groups, tokens = append(groups, group), append(tokens, f.Token)
		}
	}
	if want := []string{"v1/noted/crash-after@2+until@1", "v1/noted/crash-after@4"}; !slices.Equal(tokens, want) {
		t.Errorf("the findings are %q, want one for each place, %q", tokens, want)
	}
}
