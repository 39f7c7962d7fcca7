package trigger_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/trigger"
)

// App is a kind of an operator's own.
type App struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec AppSpec `json:"spec"`
}

// AppSpec is what a user asks for.
type AppSpec struct {
	Account string `json:"account"`
	Backup  string `json:"backup,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (a *App) DeepCopyObject() runtime.Object {
	out := *a
	metadata := &a.ObjectMeta
	metadata.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// appOf returns the App with a name.
func appOf(namespace, name string) []types.NamespacedName {
	return []types.NamespacedName{{Namespace: namespace, Name: name}}
}

// region: reference
// An App names its ServiceAccount, and is woken when that changes.
var account = trigger.Reference[*App]{
	To:    &corev1.ServiceAccount{},
	Names: func(a *App) []types.NamespacedName { return appOf(a.Namespace, a.Spec.Account) },
}

// endregion: reference

// region: kind
// A ConfigMap says in a label which App it is for.
var settings = trigger.Kind[*App, *corev1.ConfigMap]{
	Wakes: func(m *corev1.ConfigMap) []types.NamespacedName { return appOf(m.Namespace, m.Labels["app"]) },
}

// endregion: kind

// region: tracker
// A pass reads what it likes, and runs again when that changes. In a pass: err := read.Get(ctx, r.Obj, key, &configMap).
var read = &trigger.Tracker[*App]{Kinds: []client.Object{&corev1.ConfigMap{}}}

// endregion: tracker

// region: dynamic
// Certificates wake their Apps in clusters that have cert-manager, from when it is installed. Others are added while the
// operator runs: err := optional.Add("settings", settings), and err := optional.Remove("settings").
var optional = &trigger.Dynamic[*App]{
	Name: "optional",
	Sources: map[string]trigger.Source[*App]{
		"certificates": trigger.Owned[*App]{Of: &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "cert-manager.io/v1", Kind: "Certificate"},
		}},
	},
	Kinds: []client.Object{&corev1.ConfigMap{}}, // for the operator's role
}

// endregion: dynamic

// Quota is what an App may use.
type Quota struct{ Litres int }

func askQuota(context.Context, string) (Quota, error) { return Quota{}, nil }

// region: poll
// A service outside the cluster knows the quota of an account. In a pass: quota, ok := quotas.Get(r.Obj).
var quotas = &trigger.Poll[*App, Quota]{
	Every: 5 * time.Minute,
	Fetch: func(ctx context.Context, a *App) (Quota, error) { return askQuota(ctx, a.Spec.Account) },
}

// endregion: poll

// Push is what the forge tells of an App.
type Push struct{ Namespace, App, Commit string }

func token() (string, error) { return "secret", nil }

// region: inbound
// The forge posts an event for each push to an App. In a pass: push, ok := pushes.Get(r.Obj).
var pushes = &trigger.Inbound[*App, Push]{
	Server:       &trigger.Server{Address: "127.0.0.1:0"},
	Path:         "/pushes",
	Authenticate: trigger.Signature("X-Hub-Signature-256", token),
	Wakes:        func(p Push) []types.NamespacedName { return appOf(p.Namespace, p.App) },
}

// endregion: inbound

var builds = make(chan Push)

// region: channel
// A goroutine of the operator sends events. In a pass: build, ok := built.Get(r.Obj).
var built = &trigger.Channel[*App, Push]{
	From:  builds,
	Wakes: func(p Push) []types.NamespacedName { return appOf(p.Namespace, p.App) },
}

// endregion: channel

// region: cron
// Each App says when it is backed up. In a pass: err := backups.Err(r.Obj) says what is wrong with spec.backup.
var backups = &trigger.Cron[*App]{Of: func(a *App) string { return a.Spec.Backup }}

// endregion: cron

// The sources of a controller of Apps. What they watch follows from what they are, and so do the operator's
// permissions.
func Example() {
	for _, source := range []trigger.Source[*App]{account, settings, quotas, pushes, built, backups} {
		fmt.Printf("%v %d\n", source.Check(), len(source.Watches()))
	}
	// Output:
	// <nil> 1
	// <nil> 1
	// <nil> 0
	// <nil> 0
	// <nil> 0
	// <nil> 0
}

// What a Dynamic may watch is in the operator's role, and so is the watch of CRDs by which it finds out that a kind is
// served.
func ExampleDynamic() {
	for _, need := range optional.Needs() {
		fmt.Printf("%T %s %v\n", need.Of, need.Of.GetObjectKind().GroupVersionKind().Kind, need.Verbs)
	}
	fmt.Println(optional.Add("settings", settings))
	// Output:
	// *v1.ConfigMap  [list watch]
	// *v1.PartialObjectMetadata Certificate [list watch]
	// *v1.PartialObjectMetadata CustomResourceDefinition [list watch]
	// source "settings" cannot be added yet: give the trigger.Dynamic to a controller, in loop.Options.Sources, or put the source into its Sources
}

// A Tracker's Kinds are what the operator may watch.
func ExampleTracker() {
	for _, need := range read.Needs() {
		fmt.Printf("%T %v\n", need.Of, need.Verbs)
	}
	// Output: *v1.ConfigMap [list watch]
}

// A Pod waits for its ServiceAccount by name. The source watches ServiceAccounts, so the operator gets
// permission to list and watch them.
func ExampleReference() {
	var account trigger.Source[*corev1.Pod] = trigger.Reference[*corev1.Pod]{
		To: &corev1.ServiceAccount{},
		Names: func(p *corev1.Pod) []types.NamespacedName {
			return []types.NamespacedName{{Namespace: p.Namespace, Name: p.Spec.ServiceAccountName}}
		},
	}
	for _, kind := range account.Watches() {
		fmt.Printf("%T\n", kind)
	}
	fmt.Println(trigger.Reference[*corev1.Pod]{To: &corev1.ServiceAccount{}}.Check())
	// Output:
	// *v1.ServiceAccount
	// a trigger.Reference needs Names, which says which objects an object refers to
}

// The first run of a schedule after a moment.
func ExampleCron() {
	for _, schedule := range []string{"30 3 * * 1-5", "every day"} {
		a := &App{Spec: AppSpec{Backup: schedule}}
		fmt.Println(backups.Err(a))
		fmt.Println(backups.Next(a, time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)).Format(time.RFC1123))
	}
	// Output:
	// <nil>
	// Mon, 30 Nov 2026 03:30:00 UTC
	// schedule "every day": expected exactly 5 fields, found 2: [every day]; write five fields, such as "30 3 * * 1-5", or @daily
	// Mon, 01 Jan 0001 00:00:00 UTC
}
