package health

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestKinds: what objects of kinds that are known lack, and in which field.
func TestKinds(t *testing.T) {
	const (
		waits  = InProgress
		failed = Failed
		fine   = Current
	)
	type row struct {
		kind, content string // apiVersion/kind, and what else the object has
		want          Status
		why, path     string
	}
	tests := map[string]row{
		"service":                    {"v1/Service", "spec: {type: ClusterIP}", fine, "", ""},
		"load balancer without":      {"v1/Service", "spec: {type: LoadBalancer, clusterIP: 10.0.0.1}", fine, "", ""},
		"load balancer to come":      {"v1/Service", "metadata: {name: a, finalizers: [service.kubernetes.io/load-balancer-cleanup]}, spec: {type: LoadBalancer, clusterIP: 10.0.0.1}", waits, "has no address of a load balancer yet", "status.loadBalancer.ingress"},
		"load balancer":              {"v1/Service", "metadata: {name: a, finalizers: [service.kubernetes.io/load-balancer-cleanup]}, spec: {type: LoadBalancer, clusterIP: 10.0.0.1}, status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}", fine, "", ""},
		"ingress without":            {"networking.k8s.io/v1/Ingress", "spec: {}, status: {loadBalancer: {}}", fine, "", ""},
		"ingress":                    {"networking.k8s.io/v1/Ingress", "status: {loadBalancer: {ingress: [{hostname: a.example.org}]}}", fine, "", ""},
		"namespace without":          {"v1/Namespace", "", fine, "", ""},
		"namespace that goes":        {"v1/Namespace", "status: {phase: Terminating}", waits, "is in phase Terminating", "status.phase"},
		"namespace":                  {"v1/Namespace", "status: {phase: Active}", fine, "", ""},
		"claim without":              {"v1/PersistentVolumeClaim", "", waits, "is not bound to a volume", "status.phase"},
		"claim pending":              {"v1/PersistentVolumeClaim", "status: {phase: Pending}", waits, "is not bound to a volume", "status.phase"},
		"claim lost":                 {"v1/PersistentVolumeClaim", "status: {phase: Lost}", failed, "has lost its volume", "status.phase"},
		"claim":                      {"v1/PersistentVolumeClaim", "status: {phase: Bound}", fine, "", ""},
		"volume failed":              {"v1/PersistentVolume", "status: {phase: Failed, message: gone}", failed, "has failed: gone", "status.phase"},
		"volume without":             {"v1/PersistentVolume", "status: {phase: Pending}", fine, "", ""},
		"volume":                     {"v1/PersistentVolume", "status: {phase: Available}", fine, "", ""},
		"job without":                {"batch/v1/Job", "", waits, "has not completed: 0 active, 0 succeeded, 0 failed", "status.conditions[Complete]"},
		"job runs":                   {"batch/v1/Job", "status: {startTime: '2026-01-02T03:04:05Z', active: 1, failed: 2}", waits, "has not completed: 1 active, 0 succeeded, 2 failed", "status.conditions[Complete]"},
		"job complete":               {"batch/v1/Job", "status: {conditions: [{type: SuccessCriteriaMet, status: 'True'}, {type: Complete, status: 'True'}]}", fine, "", ""},
		"job about to be complete":   {"batch/v1/Job", "status: {conditions: [{type: SuccessCriteriaMet, status: 'True'}]}", waits, "has not completed: 0 active, 0 succeeded, 0 failed", "status.conditions[Complete]"},
		"job failed":                 {"batch/v1/Job", "status: {conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded, message: Job has reached the specified backoff limit}]}", failed, "has failed: Job has reached the specified backoff limit", "status.conditions[Failed]"},
		"job about to fail":          {"batch/v1/Job", "status: {conditions: [{type: FailureTarget, status: 'True', reason: PodFailurePolicy}]}", failed, "has failed: PodFailurePolicy", "status.conditions[FailureTarget]"},
		"job suspended":              {"batch/v1/Job", "status: {conditions: [{type: Suspended, status: 'True', message: Job suspended}]}", waits, "is suspended: Job suspended", "status.conditions[Suspended]"},
		"pod without":                {"v1/Pod", "", waits, "is not ready: Pod phase not available", "status.phase"},
		"pod unschedulable":          {"v1/Pod", "metadata: {name: a, creationTimestamp: '2020-01-02T03:04:05Z'}, status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: 0/3 nodes are available}]}", waits, "is not scheduled: 0/3 nodes are available", "status.conditions[PodScheduled]"},
		"pod without image":          {"v1/Pod", "status: {phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: ImagePullBackOff, message: no such image}}}]}", waits, "has container web waiting: ImagePullBackOff: no such image", "status.containerStatuses[web].state.waiting"},
		"pod failed":                 {"v1/Pod", "status: {phase: Failed, reason: Evicted}", failed, "has failed: Evicted", "status.phase"},
		"pod runs":                   {"v1/Pod", "status: {phase: Running}", waits, "is not ready: Pod is running but is not Ready", "status.phase"},
		"pod ready":                  {"v1/Pod", "status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}", fine, "", ""},
		"pod done":                   {"v1/Pod", "status: {phase: Succeeded}", fine, "", ""},
		"definition without":         {"apiextensions.k8s.io/v1/CustomResourceDefinition", "", waits, "is not ready: Install in progress", "status"},
		"definition established":     {"apiextensions.k8s.io/v1/CustomResourceDefinition", "status: {conditions: [{type: Established, status: 'True'}]}", waits, "has condition NamesAccepted Unknown", "status.conditions[NamesAccepted]"},
		"definition":                 {"apiextensions.k8s.io/v1/CustomResourceDefinition", "status: {conditions: [{type: Established, status: 'True'}, {type: NamesAccepted, status: 'True'}]}", fine, "", ""},
		"api service without":        {"apiregistration.k8s.io/v1/APIService", "", waits, "has condition Available Unknown", "status.conditions[Available]"},
		"api service broken":         {"apiregistration.k8s.io/v1/APIService", "status: {conditions: [{type: Available, status: 'False', message: no endpoints}]}", waits, "has condition Available False: no endpoints", "status.conditions[Available]"},
		"api service":                {"apiregistration.k8s.io/v1/APIService", "status: {conditions: [{type: Available, status: 'True'}]}", fine, "", ""},
		"deployment without":         {"apps/v1/Deployment", "metadata: {name: a, generation: 1}, spec: {replicas: 0}", waits, "has no status.observedGeneration yet", "status.observedGeneration"},
		"deployment starts":          {"apps/v1/Deployment", "metadata: {name: a, generation: 1}, spec: {replicas: 3}, status: {observedGeneration: 1, replicas: 3, updatedReplicas: 3, availableReplicas: 1}", waits, "is not ready: Available: 1/3", "status.availableReplicas"},
		"deployment of before":       {"apps/v1/Deployment", "metadata: {name: a, generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 1, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}", waits, "has a status of generation 1, and is at generation 2", "status.observedGeneration"},
		"deployment stuck":           {"apps/v1/Deployment", "metadata: {name: a, generation: 1}, spec: {replicas: 1, progressDeadlineSeconds: 60}, status: {observedGeneration: 1, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}", failed, "has failed: Progress deadline exceeded", "status.conditions[Progressing]"},
		"deployment over its quota":  {"apps/v1/Deployment", "metadata: {name: a, generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, conditions: [{type: ReplicaFailure, status: 'True', message: exceeded quota}]}", waits, "is not ready: exceeded quota", "status.conditions[ReplicaFailure]"},
		"deployment paused":          {"apps/v1/Deployment", "metadata: {name: a, generation: 1}, spec: {replicas: 1, paused: true}, status: {observedGeneration: 1}", waits, "is paused", "spec.paused"},
		"stateful set by hand":       {"apps/v1/StatefulSet", "metadata: {name: a, generation: 1}, spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 1, readyReplicas: 1}", waits, "is not ready: Ready: 1/2", "status.readyReplicas"},
		"stateful set nobody saw":    {"apps/v1/StatefulSet", "metadata: {name: a, generation: 1}, spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {replicas: 0}", fine, "", ""},
		"controller nobody saw":      {"v1/ReplicationController", "metadata: {name: a, generation: 1}, spec: {replicas: 2}, status: {replicas: 0}", fine, "", ""},
		"controller starts":          {"v1/ReplicationController", "metadata: {name: a, generation: 1}, spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 2}", waits, "is not ready: Ready: 0/2", "status.readyReplicas"},
		"stateful set starts":        {"apps/v1/StatefulSet", "metadata: {name: a, generation: 1}, spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 2, readyReplicas: 1}", waits, "is not ready: Ready: 1/2", "status.readyReplicas"},
		"daemon set without":         {"apps/v1/DaemonSet", "metadata: {name: a, generation: 1}", waits, "has no status.observedGeneration yet", "status.observedGeneration"},
		"daemon set starts":          {"apps/v1/DaemonSet", "metadata: {name: a, generation: 1}, status: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 1}", waits, "is not ready: Current: 1/2", "status"},
		"budget without":             {"policy/v1/PodDisruptionBudget", "metadata: {name: a, generation: 1}", fine, "", ""},
		"budget of before":           {"policy/v1/PodDisruptionBudget", "metadata: {name: a, generation: 2}, status: {observedGeneration: 1}", waits, "has a status of generation 1, and is at generation 2", "status.observedGeneration"},
		"autoscaler without":         {"autoscaling/v2/HorizontalPodAutoscaler", "status: {desiredReplicas: 0}", fine, "", ""},
		"autoscaler without target":  {"autoscaling/v2/HorizontalPodAutoscaler", "status: {conditions: [{type: AbleToScale, status: 'False', reason: FailedGetScale, message: no Deployment}]}", waits, "has condition AbleToScale False: no Deployment", "status.conditions[AbleToScale]"},
		"autoscaler without metrics": {"autoscaling/v2/HorizontalPodAutoscaler", "status: {conditions: [{type: AbleToScale, status: 'True'}, {type: ScalingActive, status: 'False', reason: FailedGetResourceMetric, message: no metrics}]}", fine, "", ""},
		"autoscaler of two":          {"autoscaling/v2/HorizontalPodAutoscaler", "status: {conditions: [{type: AbleToScale, status: 'True'}, {type: ScalingActive, status: 'False', reason: AmbiguousSelector, message: two}]}", waits, "has condition ScalingActive False: two", "status.conditions[ScalingActive]"},
		"autoscaler that cannot":     {"autoscaling/v2/HorizontalPodAutoscaler", "status: {conditions: [{type: AbleToScale, status: 'True'}, {type: ScalingActive, status: 'False', reason: InvalidSelector}]}", failed, "has condition ScalingActive False: InvalidSelector", "status.conditions[ScalingActive]"},
		"autoscaler off":             {"autoscaling/v2/HorizontalPodAutoscaler", "status: {conditions: [{type: AbleToScale, status: 'True'}, {type: ScalingActive, status: 'False', reason: ScalingDisabled}]}", fine, "", ""},
		"autoscaler":                 {"autoscaling/v2/HorizontalPodAutoscaler", "status: {conditions: [{type: AbleToScale, status: 'True'}, {type: ScalingActive, status: 'True'}]}", fine, "", ""},
		"older autoscaler without":   {"autoscaling/v1/HorizontalPodAutoscaler", "", fine, "", ""},
		"older autoscaler":           {"autoscaling/v1/HorizontalPodAutoscaler", "status: {currentReplicas: 1, desiredReplicas: 1}", fine, "", ""},
		"certificate without":        {"cert-manager.io/v1/Certificate", "", fine, "", ""},
		"certificate of before":      {"cert-manager.io/v1/Certificate", "metadata: {name: a, generation: 2}, status: {conditions: [{type: Ready, status: 'True', observedGeneration: 1}]}", waits, "has condition Ready of an earlier generation", "status.conditions[Ready]"},
		"certificate refused":        {"cert-manager.io/v1/Certificate", "status: {conditions: [{type: Ready, status: 'False', message: order failed}]}", waits, "is not ready: order failed", "status.conditions[Ready]"},
		"certificate":                {"cert-manager.io/v1/Certificate", "status: {conditions: [{type: Ready, status: 'True'}]}", fine, "", ""},
		"gateway without":            {"gateway.networking.k8s.io/v1/Gateway", "", fine, "", ""},
		"gateway by default":         {"gateway.networking.k8s.io/v1/Gateway", "status: {conditions: [{type: Programmed, status: Unknown, reason: Pending, lastTransitionTime: '1970-01-01T00:00:00Z'}]}", fine, "", ""},
		"gateway not known":          {"gateway.networking.k8s.io/v1/Gateway", "status: {conditions: [{type: Programmed, status: Unknown, message: busy, lastTransitionTime: '2026-01-02T03:04:05Z'}]}", waits, "has condition Programmed Unknown: busy", "status.conditions[Programmed]"},
		"gateway refused":            {"gateway.networking.k8s.io/v1/Gateway", "status: {conditions: [{type: Programmed, status: 'False', message: no address}]}", waits, "has condition Programmed False: no address", "status.conditions[Programmed]"},
		"snapshot without":           {"snapshot.storage.k8s.io/v1/VolumeSnapshot", "", fine, "", ""},
		"snapshot begun":             {"snapshot.storage.k8s.io/v1/VolumeSnapshot", "status: {readyToUse: false}", waits, "is not ready", "status.readyToUse"},
		"snapshot refused":           {"snapshot.storage.k8s.io/v1/VolumeSnapshot", "status: {error: {message: no driver}}", waits, "is not ready: no driver", "status.error"},
		"snapshot":                   {"snapshot.storage.k8s.io/v1/VolumeSnapshot", "status: {readyToUse: true}", fine, "", ""},
		"application without":        {"argoproj.io/v1alpha1/Application", "", fine, "", ""},
		"application degraded":       {"argoproj.io/v1alpha1/Application", "status: {health: {status: Degraded, message: one Pod}}", waits, "is Degraded: one Pod", "status.health.status"},
		"monitor":                    {"monitoring.coreos.com/v1/ServiceMonitor", "", fine, "", ""}, // nobody writes its status
		"stalled":                    {"example.org/v1/Widget", "status: {conditions: [{type: Stalled, status: 'True', message: wrong size}]}", failed, "has failed: wrong size", "status.conditions[Stalled]"},
		"stalled before":             {"example.org/v1/Widget", "metadata: {name: a, generation: 2}, status: {conditions: [{type: Stalled, status: 'True', observedGeneration: 1}]}", waits, "has condition Stalled of an earlier generation", "status.conditions[Stalled]"},
		"reconciling":                {"example.org/v1/Widget", "status: {conditions: [{type: Reconciling, status: 'True', message: new size}]}", waits, "is not ready: new size", "status.conditions[Reconciling]"},
		"no status to be read":       {"example.org/v1/Widget", "status: fine", Unknown, "has a status that cannot be read", "status.observedGeneration"},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			at := strings.LastIndexByte(test.kind, '/')
			metadata := "metadata: {name: a}, "
			if strings.HasPrefix(test.content, "metadata:") {
				metadata = ""
			}
			u := parse(t, "{apiVersion: "+test.kind[:at]+", kind: "+test.kind[at+1:]+", "+metadata+cmp.Or(test.content, "spec: {}")+"}")
			got := Of(u, Hints{}, nil)
			if got.Status != test.want || got.Path != test.path || got.Why != test.why && (test.want != Unknown || !strings.HasPrefix(got.Why, test.why)) {
				t.Errorf("got %+v, want %+v", got, Result{test.want, test.why, test.path})
			}
		})
	}
}
