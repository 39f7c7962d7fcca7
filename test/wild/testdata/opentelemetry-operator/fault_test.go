package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/kubesim/fault/actors"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	otelv1alpha1 "github.com/open-telemetry/opentelemetry-operator/apis/v1alpha1"
	otelv1beta1 "github.com/open-telemetry/opentelemetry-operator/apis/v1beta1"
	"github.com/open-telemetry/opentelemetry-operator/internal/autodetect"
	"github.com/open-telemetry/opentelemetry-operator/internal/autodetect/collector"
	"github.com/open-telemetry/opentelemetry-operator/internal/autodetect/opampbridge"
	"github.com/open-telemetry/opentelemetry-operator/internal/autodetect/targetallocator"
	"github.com/open-telemetry/opentelemetry-operator/internal/config"
	"github.com/open-telemetry/opentelemetry-operator/internal/controllers"
	collectorManifests "github.com/open-telemetry/opentelemetry-operator/internal/manifests/collector"
	operatorsetup "github.com/open-telemetry/opentelemetry-operator/internal/operator"
	"github.com/open-telemetry/opentelemetry-operator/internal/rbac"
	"github.com/open-telemetry/opentelemetry-operator/internal/version"
)

const installation = "opentelemetry-operator-system"

// setUp does what SetupManager and runOperator do between creating the manager and starting it.
func setUp(mgr ctrl.Manager, _ *fault.Env) error {
	ctx, cfg := context.Background(), config.New()
	clientset, err := kubernetes.NewForConfig(mgr.GetConfig())
	if err != nil {
		return err
	}
	reviewer := rbac.NewReviewer(clientset)
	ad, err := autodetect.New(mgr.GetConfig(), reviewer)
	if err != nil {
		return err
	}
	_ = autodetect.ApplyAutoDetect(ad, &cfg, ctrl.Log) // main only logs the error
	_ = discoverKubeAPIServer(ctx, clientset, &cfg)    // likewise
	if cfg.CollectorAvailability != collector.Available {
		return errors.New("missing OpenTelemetryCollector CRDs")
	}
	col := controllers.NewReconciler(controllers.Params{Client: mgr.GetClient(), Log: ctrl.Log, Scheme: mgr.GetScheme(), Config: cfg,
		Recorder: mgr.GetEventRecorder("opentelemetry-operator"), Reviewer: reviewer, Version: version.Get()})
	errs := []error{enableOperatorNetworkPolicy(cfg, clientset, mgr), addInstrumentationUpgrader(ctx, mgr, cfg), col.SetupWithManager(mgr)}
	if cfg.TargetAllocatorAvailability == targetallocator.Available {
		errs = append(errs, controllers.NewTargetAllocatorReconciler(mgr.GetClient(), mgr.GetScheme(), mgr.GetEventRecorder("targetallocator"), cfg, ctrl.Log).SetupWithManager(mgr))
	}
	if cfg.OpAmpBridgeAvailability == opampbridge.Available {
		errs = append(errs, controllers.NewOpAMPBridgeReconciler(controllers.OpAMPBridgeReconcilerParams{Client: mgr.GetClient(), Log: ctrl.Log,
			Scheme: mgr.GetScheme(), Config: cfg, Recorder: mgr.GetEventRecorder("opamp-bridge")}).SetupWithManager(mgr))
	}
	errs = append(errs, operatorsetup.SetupWebhooks(ctx, mgr, cfg, reviewer, ad, func(ctx context.Context, c otelv1beta1.OpenTelemetryCollector) admission.Warnings {
		params, err := col.GetParams(ctx, c)
		if params.ErrorAsWarning = true; err == nil {
			_, err = collectorManifests.Build(params)
		}
		if err != nil {
			return admission.Warnings{err.Error()}
		}
		return nil
	}))
	return errors.Join(errs...)
}

// uses expects that the Deployment mounts a ConfigMap with text, and that the collector reports its replicas.
func uses(text, replicas string) func(context.Context, *fault.World) error {
	return func(ctx context.Context, w *fault.World) error {
		var d appsv1.Deployment
		var cm corev1.ConfigMap
		var c otelv1beta1.OpenTelemetryCollector
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "otel-collector"}, &d); err != nil {
			return err
		}
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: d.Spec.Template.Spec.Volumes[0].ConfigMap.Name}, &cm); err != nil {
			return err
		}
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "otel"}, &c); err != nil {
			return err
		}
		if !strings.Contains(cm.Data["collector.yaml"], text) || c.Status.Scale.StatusReplicas != replicas {
			return fmt.Errorf("want %q in %q, replicas %s in %q", text, cm.Data["collector.yaml"], replicas, c.Status.Scale.StatusReplicas)
		}
		return nil
	}
}

func TestCollectorFaults(t *testing.T) {
	t.Setenv("NAMESPACE", installation)
	t.Setenv("SERVICE_ACCOUNT_NAME", "opentelemetry-operator-controller-manager")
	sample, err := os.ReadFile("../../config/samples/core_v1beta1_opentelemetrycollector.yaml")
	if err != nil {
		t.Fatal(err)
	}
	otel := &otelv1beta1.OpenTelemetryCollector{ObjectMeta: metav1.ObjectMeta{Name: "otel", Namespace: "default"}}
	fault.Run(t, fault.Scenario{
		Name: "collector",
		Operator: fault.Operator{
			CRDs: os.DirFS("../../config/crd/bases"), RBAC: os.DirFS("../../config/rbac"), Webhooks: os.DirFS("../../config/webhook"),
			AddToScheme: func(s *k8sruntime.Scheme) error {
				return errors.Join(otelv1alpha1.AddToScheme(s), otelv1beta1.AddToScheme(s))
			},
			SetUp: setUp,
		},
		Actors: actors.All(),
		Before: []fault.Step{
			fault.CreateYAML("{apiVersion: v1, kind: Namespace, metadata: {name: " + installation + "}}"),
			fault.CreateYAML("{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: kubernetes-api, namespace: default, labels: {kubernetes.io/service-name: kubernetes}}," +
				" addressType: IPv4, ports: [{name: https, port: 6443, protocol: TCP}], endpoints: [{addresses: [10.0.0.1]}]}"),
			fault.CreateYAML("{apiVersion: apps/v1, kind: Deployment, metadata: {name: opentelemetry-operator-controller-manager, namespace: " + installation + "}," +
				" spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: manager, image: manager}]}}}}"),
		},
		Steps: []fault.Step{
			fault.CreateYAML(string(sample)).Becomes(otel, "Ready").Expecting(uses("otlp", "1/1")),
			fault.Merge(otel, `{"spec":{"replicas":2,"config":{"exporters":{"debug":{"verbosity":"basic"}}}}}`).Becomes(otel, "Ready").Expecting(uses("basic", "2/2")),
			fault.Merge(otel, `{"spec":{"networkPolicy":{"enabled":false}}}`).Becomes(otel, "Ready").Expecting(uses("basic", "2/2")),
			fault.Delete(otel).Gone(otel),
		},
	})
}
