package operator_test

import (
	"context"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/testenv"
)

// region: ordinary

// Exposer makes a Service for each Deployment. It is an ordinary reconciler.
type Exposer struct{ client.Client }

// Reconcile implements reconcile.Reconciler.
func (e *Exposer) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	d := &appsv1.Deployment{}
	if err := e.Get(ctx, req.NamespacedName, d); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !d.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	s := service(d)
	if err := ctrl.SetControllerReference(d, s, e.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, client.IgnoreAlreadyExists(e.Create(ctx, s))
}

// endregion: ordinary

// region: wrapped

// addWrapped adds the same reconciler to a manager, with the loop's retries, deadline, metrics and traces.
func addWrapped(mgr ctrl.Manager) error {
	exposer := loop.Wrap[*appsv1.Deployment](&Exposer{mgr.GetClient()})
	return loop.New(exposer, loop.Options[*appsv1.Deployment]{Generation: loop.EveryChange}).SetupWithManager(mgr)
}

// endregion: wrapped

// region: rewritten

// exposer does the same in the terms of the loop.
type exposer struct{}

func (exposer) Reconcile(ctx context.Context, r *loop.Run[*appsv1.Deployment]) loop.Outcome {
	s := service(r.Obj)
	if err := ctrl.SetControllerReference(r.Obj, s, r.Client().Scheme()); err != nil {
		return loop.Fail(err)
	}
	return loop.FromError(client.IgnoreAlreadyExists(r.Client().Create(ctx, s)))
}

// endregion: rewritten

// region: beside

// labeler sets a label on each Deployment.
type labeler struct{}

func (labeler) Reconcile(_ context.Context, r *loop.Run[*appsv1.Deployment]) loop.Outcome {
	metav1.SetMetaDataLabel(&r.Obj.ObjectMeta, "example.org/team", "web")
	return loop.Done()
}

// addBoth adds an ordinary controller and a controller of trimtab to one manager.
func addBoth(mgr ctrl.Manager) error {
	ordinary := ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Owns(&corev1.Service{})
	if err := ordinary.Complete(&Exposer{mgr.GetClient()}); err != nil {
		return err
	}
	return loop.New(labeler{}, loop.Options[*appsv1.Deployment]{Name: "labeler"}).SetupWithManager(mgr)
}

// endregion: beside

// region: operator

// exposers is an operator of trimtab that runs an ordinary controller: operator.Main(exposers) is its main function.
var exposers = operator.Options{
	Name: "exposers",
	Setup: func(mgr ctrl.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Owns(&corev1.Service{}).Complete(&Exposer{mgr.GetClient()})
	},
	Needs: []loop.Need{
		{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Verbs: []string{"get", "list", "watch"}},
		{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Service"), Verbs: []string{"list", "watch", "create"}},
	},
}

// endregion: operator

// service is what a Deployment gets.
func service(d *appsv1.Deployment) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name},
		Spec:       corev1.ServiceSpec{Selector: d.Spec.Selector.MatchLabels, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// TestOrdinary: an ordinary reconciler does the same alone, wrapped, rewritten, beside a controller of trimtab, and in
// an operator of trimtab.
func TestOrdinary(t *testing.T) {
	t.Parallel()
	for name, add := range map[string]func(ctrl.Manager) error{
		"wrapped":     addWrapped,
		"beside":      addBoth,
		"in operator": exposers.Setup,
		"rewritten": func(mgr ctrl.Manager) error {
			return loop.New(exposer{}, loop.Options[*appsv1.Deployment]{}).SetupWithManager(mgr)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, requests := testenv.Requests(testenv.Start(t))
			scheme := runtime.NewScheme()
			if err := clientgoscheme.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			namespace := testenv.Namespace(t, cfg)
			mgr, err := ctrl.NewManager(cfg, ctrl.Options{
				Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
				Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
				Controller: config.Controller{SkipNameValidation: new(true)},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := add(mgr); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- mgr.Start(t.Context()) }()
			t.Cleanup(func() {
				if err := <-ended; err != nil {
					t.Errorf("manager: %v", err)
				}
			})
			admin := testenv.Client(t, cfg, clientgoscheme.AddToScheme)
			labels := map[string]string{"app": "a"}
			d := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"},
				Spec: appsv1.DeploymentSpec{Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "example.org/a:1"}}},
				}},
			}
			if err := admin.Create(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}
			testenv.Wait(t, admin, s, "the Service", func(s *corev1.Service) bool { return metav1.IsControlledBy(s, d) })
			if name == "beside" {
				testenv.Wait(t, admin, d, "the label", func(d *appsv1.Deployment) bool { return d.Labels["example.org/team"] == "web" })
			}
			for _, r := range requests.Select(func(r testenv.Request) bool { return r.IsWrite() && r.Resource == "deployments" }) {
				if name != "beside" && r.Verb != "create" { // the test creates it
					t.Errorf("written to the Deployment: %s", r)
				}
			}
		})
	}
}

// TestHowToLines: each way to have ordinary controllers and the loop's in one program has at most 30 lines.
func TestHowToLines(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("ordinary_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, region := range []string{"wrapped", "rewritten", "beside", "operator"} {
		_, after, found := strings.Cut(string(text), "// region: "+region+"\n")
		body, _, ends := strings.Cut(after, "// endregion: "+region+"\n")
		if n := strings.Count(strings.TrimSpace(body), "\n") + 1; !found || !ends || n < 3 || n > 30 {
			t.Errorf("%s has %d lines, want 3 to 30", region, n)
		}
	}
}
