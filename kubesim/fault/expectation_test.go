package fault

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hashes is an operator that makes a password and records its hash first. It corrects a wrong hash after a while, or never.
func hashes(corrected time.Duration) func(context.Context, client.Client, *corev1.ConfigMap) (time.Duration, error) {
	return func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
		s := &corev1.Secret{}
		err := c.Get(ctx, client.ObjectKeyFromObject(cm), s)
		if client.IgnoreNotFound(err) != nil {
			return 0, err
		}
		missing := apierrors.IsNotFound(err)
		if missing {
			s.ObjectMeta = metav1.ObjectMeta{Name: cm.Name, Namespace: cm.Namespace, Labels: map[string]string{"of": cm.Name}}
			s.Data = map[string][]byte{"password": []byte(rand.Text())}
		}
		hash := fmt.Sprintf("%x", sha256.Sum256(s.Data["password"]))
		was := cm.Data["hash"]
		wrong := was != "" && was != hash && corrected > 0
		err = nil
		if was == "" || wrong && time.Since(cm.CreationTimestamp.Time) >= corrected {
			cm.Data = map[string]string{"hash": hash}
			err = c.Update(ctx, cm)
		}
		if missing && err == nil {
			err = c.Create(ctx, s)
		}
		if wrong {
			return corrected, err
		}
		return 0, err
	}
}

// TestExpectations proves that disturbed runs must meet what their steps expect, too, as soon as the operator has
// had time for that, and that what users undo is not expected.
func TestExpectations(t *testing.T) {
	cm := configMap("a")
	right := func(ctx context.Context, w *World) error {
		c, s := &corev1.ConfigMap{}, &corev1.Secret{}
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(cm), c); err != nil {
			return err
		}
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(cm), s); err != nil {
			return err
		}
		if c.Data["hash"] != fmt.Sprintf("%x", sha256.Sum256(s.Data["password"])) {
			return fmt.Errorf("the hash in %s is not that of the password", cm.Name)
		}
		return nil
	}
	scenario := func(corrected time.Duration) Scenario {
		return Scenario{
			Name: "hashes", Operator: Operator{SetUp: does(hashes(corrected))}, Races: []Step{Delete(cm)}, Shared: []string{"configmaps"},
			Steps: []Step{Create(cm).Expecting(right)},
		}
	}
	waived := []Option{Waive(I4, "nothing is deleted here"), Waive(I5, "it observes again"), Only(Crashes, Faults, Races)}
	r := Explore(t, scenario(0), waived...)
	want := `the expectation of step "create a" is not met, as it is without the disturbance: the hash in a is not that of the password`
	if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Violations[0].Message == want && f.Violations[0].Invariant == I1 }) {
		t.Errorf("got %d findings, want one that says %q\n%s", len(r.Findings), want, strings.Join(r.texts(), "\n"))
	}
	for _, text := range Explore(t, scenario(10*time.Minute), waived...).texts() {
		t.Error(text)
	}
}

// TestAsleep proves that what the operator sees only after a restart is a finding of the undisturbed run, and that
// disturbances that wake it are none. The operator looks at a Secret that it does not watch. What a conflict breaks is a finding in
// both steps.
func TestAsleep(t *testing.T) {
	for breaks, want := range map[bool]int{false: 1, true: 3} {
		a, endpoints := configMap("a"), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "endpoints", Namespace: "default"}}
		r := Explore(t, Scenario{
			Name: "unwatched", Steps: []Step{Create(a), Create(endpoints), Merge(a, `{"data":{"size":"2"}}`)}, Races: []Step{}, Shared: []string{"configmaps"},
			Operator: Operator{SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
				err := c.Get(ctx, client.ObjectKeyFromObject(endpoints), &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}})
				available := "Unknown"
				if cm.Annotations["available"] == "False" {
					return 0, nil
				}
				if err == nil && cm.Annotations["available"] != "" {
					available = "True"
				}
				if client.IgnoreNotFound(err) != nil || cm.Annotations["available"] == available && cm.Annotations["size"] == cm.Data["size"] {
					return 0, client.IgnoreNotFound(err)
				}
				metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "available", available)
				metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "size", cm.Data["size"])
				err = c.Update(ctx, cm)
				if breaks && apierrors.IsConflict(err) {
					err = c.Patch(ctx, configMap("a"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"available":"False"}}}`)))
				}
				return 0, err
			})},
		}, Only(Crashes, Faults, Duplicates), Waive(I5, "it looks at what it does not watch"))
		if got := len(r.texts()); got != want {
			t.Errorf("breaks %v: %d findings, want %d:\n%s", breaks, got, want, strings.Join(r.texts(), "\n"))
		}
	}
}

// TestExpectsOtherwise proves that a difference comes with what the step expects.
func TestExpectsOtherwise(t *testing.T) {
	cm := configMap("a")
	r := Explore(t, Scenario{
		Name: "once", Races: []Step{},
		Operator: Operator{SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
			if cm.Data["step"] != "" {
				return 0, nil
			}
			cm.Data = map[string]string{"step": "one"}
			if err := c.Update(ctx, cm); err != nil {
				return 0, err
			}
			cm.Data["step"] = "two"
			return 0, c.Update(ctx, cm)
		})},
		Steps: []Step{Create(cm).Expecting(func(ctx context.Context, w *World) error {
			u, err := read(ctx, w, cm)
			if data, _ := u.Object["data"].(map[string]any); err == nil && data["step"] != "two" {
				err = fmt.Errorf("a is at step %v", data["step"])
			}
			return err
		})},
	}, Only(Crashes))
	want := `data.step of ConfigMap default/a is "one", "two" without the disturbance, at the end of step "create a", which expects otherwise: a is at step one`
	if len(r.Findings) == 0 || r.Findings[0].Violations[0].Message != want {
		t.Errorf("got %s, want %q first", strings.Join(r.texts(), "\n"), want)
	}
}
