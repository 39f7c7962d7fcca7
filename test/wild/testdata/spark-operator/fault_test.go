package fault_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/kubesim/fault/actors"

	"github.com/kubeflow/spark-operator/v2/api/v1alpha1"
	"github.com/kubeflow/spark-operator/v2/api/v1beta2"
	"github.com/kubeflow/spark-operator/v2/internal/controller/sparkapplication"
	"github.com/kubeflow/spark-operator/v2/internal/webhook"
	"github.com/kubeflow/spark-operator/v2/pkg/common"
	"github.com/kubeflow/spark-operator/v2/pkg/util"
)

const sample = `
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: pi, namespace: default}
spec:
  type: Scala
  mode: cluster
  image: docker.io/apache/spark:4.0.4
  mainClass: org.apache.spark.examples.SparkPi
  mainApplicationFile: local:///opt/spark/examples/jars/spark-examples.jar
  sparkVersion: 4.0.4
  driver: {serviceAccount: spark-operator-spark}
  executor: {instances: 1}
`

// submitter creates the driver pod, as spark-submit does.
type submitter struct{ client.Client }

func (s submitter) Submit(ctx context.Context, app *v1beta2.SparkApplication) error {
	return s.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: app.Status.DriverInfo.PodName, Namespace: app.Namespace, Labels: map[string]string{
			common.LabelSparkAppName: app.Name, common.LabelLaunchedBySparkOperator: "true",
			common.LabelSparkRole: common.SparkRoleDriver, common.LabelSubmissionID: app.Status.SubmissionID,
		}},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: common.SparkDriverContainerName, Image: *app.Spec.Image}}},
	})
}

func TestFaults(t *testing.T) {
	app := &v1beta2.SparkApplication{ObjectMeta: metav1.ObjectMeta{Name: "pi", Namespace: "default"}}
	byLabel := func(name string) cache.ByObject {
		return cache.ByObject{Label: labels.SelectorFromSet(labels.Set{name: "true"})}
	}
	driver := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pi-driver"}}
	const image = `spec: {containers: [{image: "docker.io/apache/spark:4.0.5"}]}`
	in := func(state v1beta2.ApplicationStateType) string {
		return fmt.Sprintf("status: {applicationState: {state: %q}}", state)
	}
	fault.Run(t, fault.Scenario{
		Name: "spark",
		Operator: fault.Operator{
			CRDs: os.DirFS("../../config/crd/bases"), RBAC: os.DirFS("../../config/rbac"), Webhooks: os.DirFS("../../config/webhook"),
			AddToScheme: func(s *runtime.Scheme) error {
				b := runtime.SchemeBuilder{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, v1beta2.AddToScheme}
				return b.AddToScheme(s)
			},
			Manager: ctrl.Options{
				Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: map[client.Object]cache.ByObject{
					&corev1.Pod{}: byLabel(common.LabelLaunchedBySparkOperator), &corev1.Service{}: byLabel(common.LabelCreatedBySparkOperator),
					&corev1.ConfigMap{}: byLabel(common.LabelCreatedBySparkOperator),
				}},
				Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&networkingv1.Ingress{}}}},
			},
			SetUp: func(mgr ctrl.Manager, _ *fault.Env) error {
				r := sparkapplication.NewReconciler(mgr, mgr.GetScheme(), mgr.GetClient(), mgr.GetEventRecorder("spark-application-controller"), nil,
					submitter{mgr.GetClient()}, sparkapplication.Options{EnableUIService: true, DriverPodCreationGracePeriod: 10 * time.Second, MaxTrackedExecutorPerApp: 1000})
				o := controller.Options{MaxConcurrentReconciles: 10, CacheSyncTimeout: 30 * time.Second, RateLimiter: util.NewRateLimiter[ctrl.Request](10, 100, rate.InfDuration)}
				if err := r.SetupWithManager(mgr, o); err != nil {
					return err
				}
				if err := ctrl.NewWebhookManagedBy(mgr, &v1beta2.SparkApplication{}).WithDefaulter(webhook.NewSparkApplicationDefaulter()).
					WithValidator(webhook.NewSparkApplicationValidator(mgr.GetClient(), false)).Complete(); err != nil {
					return err
				}
				return ctrl.NewWebhookManagedBy(mgr, &corev1.Pod{}).WithDefaulter(webhook.NewSparkPodDefaulter(mgr.GetClient(), nil)).Complete()
			},
		},
		Actors: actors.All(),
		Steps: []fault.Step{
			fault.CreateYAML(sample).Has(app, in(v1beta2.ApplicationStateRunning)),
			fault.Merge(app, `{"spec":{"image":"docker.io/apache/spark:4.0.5"}}`).Has(app, in(v1beta2.ApplicationStateRunning)).Has(driver, image),
			fault.Step{Name: "the driver ends", Do: func(ctx context.Context, w *fault.World) error {
				return w.Client.Status().Patch(ctx, driver.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Succeeded"}}`)))
			}}.As("kubelet").Has(app, in(v1beta2.ApplicationStateCompleted)).Has(driver, image),
			fault.Delete(app).Gone(app).Gone(driver),
		},
	})
}
