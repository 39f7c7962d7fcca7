package faulttest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rabbitmq/cluster-operator/v2/api/v1beta1"
	controllers "github.com/rabbitmq/cluster-operator/v2/internal/controller"
	"github.com/rabbitmq/cluster-operator/v2/internal/rabbitmqclient"
	webhookv1beta1 "github.com/rabbitmq/cluster-operator/v2/internal/webhook/v1beta1"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/kubesim/fault/actors"
)

// broker is what the operator sees of RabbitMQ: its management API, and commands in its Pods. It keeps what they set.
type broker struct {
	flags   bool
	plugins string
}

func (b *broker) Resources() (all []fault.Resource) {
	if b.flags {
		all = append(all, fault.Resource{Kind: "feature flags", ID: "all", Ready: true})
	}
	if b.plugins != "" {
		all = append(all, fault.Resource{Kind: "plugins", ID: "set", State: b.plugins, Ready: true})
	}
	return all
}
func (b *broker) Clone() fault.ExternalAPI { return &broker{b.flags, b.plugins} }
func (b *broker) Handler() http.Handler {
	answers := map[string]string{"/api/overview": `{"rabbitmq_version":"4.3.4","erlang_version":"27.3"}`,
		"/api/health/checks/node-is-quorum-critical": `{"status":"ok"}`, "/api/deprecated-features/used": `[]`}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, answers[r.URL.Path]) })
}

type executor struct{ env *fault.Env }

func (e executor) Exec(_ *kubernetes.Clientset, _ *rest.Config, _, pod, _ string, command ...string) (string, string, error) {
	what, call := "exec "+pod+": "+command[len(command)-1], fault.Write[*broker, string]
	if strings.Contains(what, "cat ") {
		call = fault.Read[*broker, string]
	}
	out, err := call(context.Background(), e.env, what, func(b *broker) (string, error) {
		b.flags = b.flags || strings.Contains(what, "enable_feature_flag all")
		if _, set, ok := strings.Cut(what, "rabbitmq-plugins set"); ok {
			b.plugins = "plugins" + set
		}
		return "true", nil
	})
	return out, "", err
}

// clients are the operator's own, which talk to the fake.
type clients struct {
	rabbitmqclient.DefaultRabbitmqClientFactory
	env *fault.Env
}

func (c *clients) faked(rc rabbitmqclient.RabbitmqClient, err error) (rabbitmqclient.RabbitmqClient, error) {
	if err == nil {
		rc.(*rabbithole.Client).SetTransport(fault.HTTP(c.env, (*broker).Handler))
	}
	return rc, err
}

func (c *clients) GetClientForPod(ctx context.Context, r client.Reader, rmq *v1beta1.RabbitmqCluster, pod string) (rabbitmqclient.RabbitmqClient, error) {
	return c.faked(c.DefaultRabbitmqClientFactory.GetClientForPod(ctx, r, rmq, pod))
}

func (c *clients) GetClientForService(ctx context.Context, r client.Reader, rmq *v1beta1.RabbitmqCluster) (rabbitmqclient.RabbitmqClient, error) {
	return c.faked(c.DefaultRabbitmqClientFactory.GetClientForService(ctx, r, rmq))
}

// setUp does what main does.
func setUp(mgr ctrl.Manager, env *fault.Env) error {
	const image = "rabbitmq:4.3.4-management"
	if err := (&controllers.RabbitmqClusterReconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Scheme: mgr.GetScheme(),
		Recorder: mgr.GetEventRecorderFor("rabbitmqcluster-controller"), Namespace: "rabbitmq-system", ClusterConfig: mgr.GetConfig(),
		Clientset: kubernetes.NewForConfigOrDie(mgr.GetConfig()), PodExecutor: executor{env}, RabbitmqClientFactory: &clients{env: env},
		DefaultRabbitmqImage: image}).SetupWithManager(mgr); err != nil {
		return err
	}
	if err := (&controllers.DeprecatedFeatureReconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(),
		RabbitmqClientFactory: &clients{env: env}, Interval: 5 * time.Minute}).SetupWithManager(mgr); err != nil {
		return err
	}
	return webhookv1beta1.SetupRabbitmqClusterWebhookWithManager(mgr, webhookv1beta1.RabbitmqClusterCustomDefaulter{DefaultRabbitmqImage: image})
}

// grown expects that the volume has grown.
func grown(ctx context.Context, w *fault.World) error {
	claim := &corev1.PersistentVolumeClaim{}
	if err := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "persistence-demo-server-0"}, claim); err != nil {
		return err
	}
	if size := claim.Spec.Resources.Requests.Storage().String(); size != "20Gi" {
		return fmt.Errorf("the claim requests %s", size)
	}
	return nil
}

func TestRabbitmqCluster(t *testing.T) {

	op := fault.Operator{CRDs: os.DirFS("../../config/crd/bases"), RBAC: os.DirFS("../../config/rbac"), Webhooks: os.DirFS("../../config/webhook")}
	op.AddToScheme, op.SetUp = v1beta1.AddToScheme, setUp
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{"app.kubernetes.io/part-of": "rabbitmq"})}
	op.Manager.Cache.ByObject = map[client.Object]cache.ByObject{&v1beta1.RabbitmqCluster{}: {}, &appsv1.StatefulSet{}: ours, &corev1.Pod{}: ours,
		&corev1.Service{}: ours, &corev1.ConfigMap{}: ours, &corev1.Secret{}: ours, &corev1.ServiceAccount{}: ours,
		&discoveryv1.EndpointSlice{}: ours, &rbacv1.Role{}: ours, &rbacv1.RoleBinding{}: ours}
	demo := &v1beta1.RabbitmqCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	ready := func(s fault.Step) fault.Step {
		return s.Becomes(demo, "AllReplicasReady").Becomes(demo, "ClusterAvailable").Becomes(demo, "ReconcileSuccess")
	}
	fault.Run(t, fault.Scenario{Name: "rabbitmq", Operator: op, ExternalAPI: func() fault.ExternalAPI { return &broker{} },
		Actors: actors.All(),
		Steps: []fault.Step{
			ready(fault.CreateYAML(`{apiVersion: rabbitmq.com/v1beta1, kind: RabbitmqCluster, metadata: {name: demo}, spec: {replicas: 1}}`)),
			ready(fault.Merge(demo, `{"spec":{"rabbitmq":{"additionalPlugins":["rabbitmq_shovel"],"additionalConfig":"vm_memory_high_watermark.relative = 0.7\n"}}}`)),
			ready(fault.Merge(demo, `{"spec":{"persistence":{"storage":"20Gi"}}}`)).Expecting(grown),
			fault.Delete(demo).Gone(demo),
		},
		// the StatefulSet actor's hash of a template that contains the time of a restart
		Foreign: []string{"metadata.labels.controller-revision-hash", "status.currentRevision", "status.updateRevision"},
	}, fault.Only(fault.Crashes, fault.Faults, fault.Stale, fault.Delays, fault.Forgeries, fault.Overtaken), fault.Seed(7))
}
