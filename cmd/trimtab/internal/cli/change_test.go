package cli

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/ui"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestRefusals: a refusal is reported in the words of the API server, not as a missing permission or as a change meanwhile.
func TestRefusals(t *testing.T) {
	t.Parallel()
	things := schema.GroupResource{Group: thing.GroupVersion.Group, Resource: "things"}
	webhook := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "guard.example.org" denied the request: not on Fridays`,
	}}
	tests := map[string]struct {
		why     string
		err     error
		allowed bool
		want    string
		not     string
	}{
		"no permission": {"it is to be asked for", apierrors.NewForbidden(things, "a", errors.New("no")), false, "you need the permission to patch it", "refuses"},
		"a webhook":     {"a permission would not help", webhook, true, "the API server refuses it: " + webhook.Error() + "; correct what it says, or ask whoever has made that rule", "permission"},
		"an invalid object": {
			"nobody has changed it", apierrors.NewInvalid(schema.GroupKind{Group: things.Group, Kind: "Thing"}, "a", field.ErrorList{field.Required(field.NewPath("spec", "size"), "")}), true,
			"refuses it: Thing.things.trimtab.dev \"a\" is invalid: spec.size: Required value; correct what it says", "meanwhile",
		},
		"a conflict": {"it is to be looked at again", apierrors.NewConflict(things, "a", errors.New("no")), true, "it was changed meanwhile; look at it again", "refuses"},
		"gone":       {"there is nothing to change", apierrors.NewNotFound(things, "a"), true, "does not exist any more", "refuses"},
		"away":       {"it may have been changed", apierrors.NewInternalError(errors.New("connection refused")), true, "change Thing/a: Internal error occurred: connection refused", "not changed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return tt.err
				},
				Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
					obj.(*authorizationv1.SelfSubjectAccessReview).Status.Allowed = tt.allowed
					return nil
				},
			})
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(thing.GroupVersion.WithKind("Thing"), meta.RESTScopeNamespace)
			r := model.Ref{APIVersion: thing.GroupVersion.String(), Kind: "Thing", Namespace: "n", Name: "a"}
			err := target{client: c, mapper: mapper}.patch(t.Context(), r, "", nil, false)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), tt.not) {
				t.Errorf("it says %v, want %q without %q: %s", err, tt.want, tt.not, tt.why)
			}
		})
	}
}

// TestReplaced: an action of the dashboard, and a change that was decided on, are for the object that was looked at alone.
func TestReplaced(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const manifest = `apiVersion: things.trimtab.dev/v1
kind: Thing
metadata: {name: a}
spec: {}`
	d.put(manifest)
	target, r := d.asked("thing/a")
	old := target.cluster().UID(t.Context(), r)
	change, err := target.cluster().Pause(t.Context(), r, "")
	d.do(err)
	a := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "a"}}
	d.do(d.client.Delete(t.Context(), a))
	d.put(manifest)
	actions := target.dashboard("test").Actions
	pause := actions[slices.IndexFunc(actions, func(a ui.Action) bool { return a.Verb == "pause" })]
	agree := func([]string) error { return nil }
	for what, err := range map[string]error{"the page": pause.Do(t.Context(), r, change.UID(), agree), "a race": target.make(t.Context(), change, false)} {
		if err == nil || err.Error() != "Thing/a is not changed: it was deleted, and is another object of the same name by now; look at that one first" {
			t.Errorf("%s: %v", what, err)
		}
	}
	d.do(d.client.Get(t.Context(), client.ObjectKeyFromObject(a), a))
	if a.Annotations[api.AnnotationPaused] != "" || string(a.UID) == old {
		t.Errorf("annotations %v of object %s", a.Annotations, a.UID)
	}
	d.do(pause.Do(t.Context(), r, a.UID, agree))
	d.do(d.client.Get(t.Context(), client.ObjectKeyFromObject(a), a))
	if a.Annotations[api.AnnotationPaused] != "true" {
		t.Errorf("annotations %v", a.Annotations)
	}
	if err := pause.Do(t.Context(), r, a.UID, agree); err == nil || err.Error() != "Thing/a: there is nothing to pause any more" {
		t.Errorf("a second time: %v", err)
	}
}

// TestAgreed: an action of the dashboard is done if what follows from it is what the page has shown.
func TestAgreed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(`apiVersion: things.trimtab.dev/v1
kind: Thing
metadata: {name: moved}
spec: {}
status:
  observedGeneration: 1
  external: {id: m1}
  conditions:
  - {type: Ready, status: "False", reason: EndpointChanged, message: "the endpoint is another one; set annotation trimtab.dev/endpoint to \"west:1\"", lastTransitionTime: "2026-01-02T03:04:05Z"}`)
	target, r := d.asked("thing/moved")
	moved := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "moved"}}
	d.do(d.client.Get(t.Context(), client.ObjectKeyFromObject(moved), moved))
	actions := target.dashboard("test").Actions
	approve := actions[slices.IndexFunc(actions, func(a ui.Action) bool { return a.Verb == "approve" })]
	effects, offered := approve.For(t.Context(), target.cluster(), model.Object{Ref: r})
	if text := strings.Join(effects, "; "); !offered || !strings.HasPrefix(text, "held: the endpoint is another one") || !strings.Contains(text, `external resource "m1" stays at the former endpoint`) {
		t.Errorf("offered: %t, with the effects %s", offered, text)
	}
	other := errors.New("it was shown otherwise")
	if err := approve.Do(t.Context(), r, moved.UID, func([]string) error { return other }); !errors.Is(err, other) {
		t.Errorf("an approval of what was not shown: %v", err)
	}
	d.do(d.client.Get(t.Context(), client.ObjectKeyFromObject(moved), moved))
	if moved.Annotations[api.AnnotationEndpoint] != "" {
		t.Errorf("annotations %v before anybody agreed", moved.Annotations)
	}
	d.do(approve.Do(t.Context(), r, moved.UID, func(now []string) error {
		if !slices.Equal(now, effects) {
			t.Errorf("what follows is %q, and %q was shown", now, effects)
		}
		return nil
	}))
	d.do(d.client.Get(t.Context(), client.ObjectKeyFromObject(moved), moved))
	if moved.Annotations[api.AnnotationEndpoint] != "west:1" {
		t.Errorf("annotations %v", moved.Annotations)
	}
	if _, offered := approve.For(t.Context(), target.cluster(), model.Object{Ref: r}); offered {
		t.Error("what is approved is offered once more")
	}
}

// TestFollows: whoever agrees to a change sees what does not stay.
func TestFollows(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]model.Change{
		"a":                 {Effects: []string{"a"}},
		"a; not kept: b, c": {Effects: []string{"a"}, Gone: []string{"b", "c"}},
	} {
		if got := strings.Join(follows(c), "; "); got != want {
			t.Errorf("what follows is %q, want %q", got, want)
		}
	}
}

// asked returns what a command is given for an object.
func (d *desk) asked(words ...string) (target, model.Ref) {
	d.t.Helper()
	var k kube
	k.bind(&cobra.Command{}, false)
	*k.flags.KubeConfig, *k.flags.Namespace = d.file, d.namespace
	t, r, err := k.asked(words)
	d.do(err)
	return t, r
}

// TestNamed: a command repeats the flags that name the cluster, as they were given, and no secret.
func TestNamed(t *testing.T) {
	t.Parallel()
	var k kube
	cmd := &cobra.Command{}
	k.bind(cmd, true)
	args := []string{"--context", "my prod", "--kubeconfig=/a b/c", "-n", "shop", "-A", "--token", "s3cret", "--as-group", "x", "--as-group", "y", "--insecure-skip-tls-verify", "-o", "json"}
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	want := []string{"--as-group=x", "--as-group=y", "--context=my prod", "--insecure-skip-tls-verify=true", "--kubeconfig=/a b/c"}
	if got := k.named(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	again := &cobra.Command{}
	k.bind(again, true)
	if err := again.ParseFlags(want); err != nil || k.named() == nil {
		t.Errorf("a command does not take what it repeats: %v", err)
	}
}

// TestPauseUnseen: a user who may not read definitions is told so, instead of that there is nothing to pause.
func TestPauseUnseen(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(`apiVersion: things.trimtab.dev/v1
kind: Thing
metadata: {name: a}
spec: {}`)
	writer := testenv.Kubeconfig(t, testenv.User(t, d.cfg, rbacv1.PolicyRule{APIGroups: []string{thing.GroupVersion.Group}, Resources: []string{"things"}, Verbs: []string{"get", "patch"}}))
	const unseen = "Not seen: CustomResourceDefinition things.things.trimtab.dev: forbidden"
	d.asks(asks{
		"pause":     {"it is said", []string{"pause", "thing/a", "--dry-run"}, writer, 0, []string{"would set annotation trimtab.dev/paused: true", "nothing, if objects of kind Thing have no external resource, which could not be seen", unseen}},
		"for":       {"it is said", []string{"pause", "thing/a", "--for", "1h"}, writer, 0, []string{"annotation trimtab.dev/paused: 20", unseen}},
		"may not":   {"a permission is missing", []string{"pause", "thing/a"}, d.reader(), 1, []string{"Thing/a is not changed: you need the permission to patch it"}},
		"reconcile": {"it is asked for", []string{"reconcile", "thing/a", "--wait", "0"}, writer, 0, []string{"Thing/a: asked", "nothing, if the operator of Thing is not one of trimtab, which could not be seen", unseen}},
		"no verb":   {"nobody would act on it", []string{"reconcile", "namespace/NS", "--wait", "0"}, "", 1, []string{"objects of kind Namespace have no status.handledReconcile, so no operator of trimtab acts on the request"}},
	})
}
