package devcluster

import (
	"context"
	"errors"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

// autoscaling runs the HorizontalPodAutoscaler controller of
// kube-controller-manager with simulated metrics.
func (s *simulation) autoscaling(ctx context.Context) (func(context.Context), error) {
	// The defaults of kube-controller-manager.
	const (
		syncPeriod       = 15 * time.Second
		stabilization    = 5 * time.Minute
		tolerance        = 0.1
		cpuInitialPeriod = 5 * time.Minute
		readinessDelay   = 30 * time.Second
	)
	discovery := s.clients.Discovery()
	mapper := &currentMapper{restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery))}
	scales, err := scale.NewForConfig(s.config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(discovery))
	if err != nil {
		return nil, err
	}
	pods := s.informers.Core().V1().Pods()
	controller := podautoscaler.NewHorizontalController(ctx,
		s.clients.CoreV1(), scales, s.clients.AutoscalingV2(), mapper, usage{pods.Lister()},
		s.informers.Autoscaling().V2().HorizontalPodAutoscalers(), pods,
		syncPeriod, stabilization, tolerance, cpuInitialPeriod, readinessDelay)
	return func(ctx context.Context) { controller.Run(ctx, 1) }, nil
}

// usage is the metrics of simulated pods: a running pod uses no CPU and no
// memory, so that an autoscaler asks for its least number of replicas.
type usage struct{ pods corelisters.PodLister }

var _ metrics.MetricsClient = usage{}

func (u usage) GetResourceMetric(_ context.Context, _ corev1.ResourceName, namespace string, selector labels.Selector, _ string) (metrics.PodMetricsInfo, time.Time, error) {
	pods, err := u.pods.Pods(namespace).List(selector)
	if err != nil {
		return nil, time.Time{}, err
	}
	now, used := time.Now(), metrics.PodMetricsInfo{}
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning {
			used[p.Name] = metrics.PodMetric{Timestamp: now}
		}
	}
	if len(used) == 0 {
		return nil, time.Time{}, errors.New("no pod is running yet")
	}
	return used, now, nil
}

// errNoMetric is why an autoscaler keeps the number of replicas.
var errNoMetric = errors.New("the simulated metrics are cpu and memory; nothing publishes others in this cluster")

func (usage) GetRawMetric(string, string, labels.Selector, labels.Selector) (metrics.PodMetricsInfo, time.Time, error) {
	return nil, time.Time{}, errNoMetric
}

func (usage) GetObjectMetric(string, string, *autoscalingv2.CrossVersionObjectReference, labels.Selector) (int64, time.Time, error) {
	return 0, time.Time{}, errNoMetric
}

func (usage) GetExternalMetric(string, string, labels.Selector) ([]int64, time.Time, error) {
	return nil, time.Time{}, errNoMetric
}

// currentMapper asks the server again about kinds that it does not know: an
// autoscaler may scale a custom resource that was defined later.
type currentMapper struct {
	*restmapper.DeferredDiscoveryRESTMapper
}

func (m *currentMapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	found, err := m.DeferredDiscoveryRESTMapper.RESTMappings(kind, versions...)
	if meta.IsNoMatchError(err) {
		m.Reset()
		found, err = m.DeferredDiscoveryRESTMapper.RESTMappings(kind, versions...)
	}
	return found, err
}
