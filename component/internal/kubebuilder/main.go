// Command kubebuilder is an operator of components as a kubebuilder project has it: its main function makes a
// manager and calls SetupWithManager. Tests run it.
package main

import (
	"context"
	"flag"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trimtab-dev/trimtab/component"
)

// name identifies the operator in the cluster.
const name = "greetings.trimtab.dev"

func main() {
	var metricsAddr string
	var enableLeaderElection bool
	flag.StringVar(&metricsAddr, "metrics-bind-address", "0", "The address the metrics endpoint binds to.")
	flag.BoolVar(&enableLeaderElection, "leader-elect", false, "Enable leader election for controller manager.")
	flag.Parse()
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil)))
	setupLog := ctrl.Log.WithName("setup")

	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	addToScheme(scheme)

	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metricsserver.Options{BindAddress: metricsAddr},
		LeaderElection:          enableLeaderElection,
		LeaderElectionID:        name,
		LeaderElectionNamespace: os.Getenv("POD_NAMESPACE"),
	})
	if err != nil {
		setupLog.Error(err, "unable to start manager")
		os.Exit(1)
	}
	if err := component.NewReconciler[*Greeting](name, greetings{}, component.ReconcilerOptions{}).SetupWithManager(mgr); err != nil {
		setupLog.Error(err, "unable to create controller", "controller", "Greeting")
		os.Exit(1)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		setupLog.Error(err, "problem running manager")
		os.Exit(1)
	}
}

// greetings is the generator.
type greetings struct{}

// Generate implements component.Generator.
func (greetings) Generate(_ context.Context, namespace, name string, parameters component.Unstructurable) ([]client.Object, error) {
	text, _ := parameters.ToUnstructured()["text"].(string)
	return []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"text": text},
	}}, nil
}

// Greeting is a component.
type Greeting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   GreetingSpec     `json:"spec"`
	Status component.Status `json:"status,omitzero"`
}

// GreetingSpec is the spec of a Greeting.
type GreetingSpec struct {
	Text string `json:"text"`
}

// ToUnstructured implements component.Unstructurable.
func (s *GreetingSpec) ToUnstructured() map[string]any { return map[string]any{"text": s.Text} }

// GetSpec implements component.Component.
func (g *Greeting) GetSpec() component.Unstructurable { return &g.Spec }

// GetStatus implements component.Component.
func (g *Greeting) GetStatus() *component.Status { return &g.Status }

// DeepCopyObject implements runtime.Object.
func (g *Greeting) DeepCopyObject() runtime.Object {
	return &Greeting{TypeMeta: g.TypeMeta, ObjectMeta: *g.DeepCopy(), Spec: g.Spec, Status: *g.Status.DeepCopy()}
}

// GreetingList is a list of Greetings.
type GreetingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Greeting `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *GreetingList) DeepCopyObject() runtime.Object {
	out := &GreetingList{TypeMeta: l.TypeMeta, ListMeta: *l.DeepCopy()}
	for i := range l.Items {
		copied, _ := l.Items[i].DeepCopyObject().(*Greeting)
		out.Items = append(out.Items, *copied)
	}
	return out
}

func addToScheme(s *runtime.Scheme) {
	v1 := schema.GroupVersion{Group: name, Version: "v1"}
	s.AddKnownTypes(v1, &Greeting{}, &GreetingList{})
	metav1.AddToGroupVersion(s, v1)
}
