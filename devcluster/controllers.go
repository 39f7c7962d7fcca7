package devcluster

import (
	"context"
	"fmt"
	"strings"

	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	controlleroptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/trimtab-dev/trimtab/devcluster/internal/pki"
)

// controllers returns the controllers that an operator or a kubectl user would
// miss. The others need clouds, kubelets or metrics. The binder of claims and the
// HorizontalPodAutoscaler controller run in the simulation; see [simulate].
func controllers() []string {
	return []string{
		// Identity and namespaces.
		names.NamespaceController,
		names.ServiceAccountController,
		names.ServiceAccountTokenController,
		names.RootCACertificatePublisherController,
		names.ClusterRoleAggregationController,
		names.ResourceQuotaController,
		// Deletion. Claims and volumes get a finalizer at admission; without their
		// controllers, they and their namespace would never be deleted.
		names.GarbageCollectorController,
		names.PodGarbageCollectorController,
		names.TTLAfterFinishedController,
		names.PersistentVolumeClaimProtectionController,
		names.PersistentVolumeProtectionController,
		// Workloads.
		names.DeploymentController,
		names.ReplicaSetController,
		names.ReplicationControllerController,
		names.StatefulSetController,
		names.DaemonSetController,
		names.JobController,
		names.CronJobController,
		names.EphemeralVolumeController, // makes the claims of a pod's ephemeral volumes
		names.DisruptionController,
		// Nodes: taints by condition, eviction by taint.
		names.NodeLifecycleController,
		names.TaintEvictionController,
		// Services.
		names.EndpointsController,
		names.EndpointSliceController,
		names.EndpointSliceMirroringController,
		// Admission.
		names.ValidatingAdmissionPolicyStatusController,
	}
}

// startControllers uses the manager's options, Config and Run directly, because
// its cobra command refuses to run in a process whose logging is already set up.
func (c *Cluster) startControllers(ctx context.Context) error {
	opts, err := controlleroptions.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("kube-controller-manager's options: %w", err)
	}
	known, disabled, aliases := controllermanager.KnownControllers(), controllermanager.ControllersDisabledByDefault(), controllermanager.ControllerAliases()
	if err := parse(opts.Flags(known, disabled, aliases), []string{
		"--kubeconfig=" + c.kubeconfigFor(pki.Controllers),
		"--controllers=" + strings.Join(controllers(), ","),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.pki.Key(pki.ServiceAccounts),
		"--root-ca-file=" + c.pki.Cert(pki.CA),
		"--leader-elect=false",
		"--secure-port=0",
		"--profiling=false",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		// Simulated nodes send no heartbeats, which keeps an idle cluster idle.
		"--node-monitor-grace-period=87600h",
	}); err != nil {
		return fmt.Errorf("kube-controller-manager's flags: %w", err)
	}
	config, err := opts.Config(ctx, known, disabled, aliases)
	if err != nil {
		return fmt.Errorf("kube-controller-manager's options: %w", err)
	}
	c.run(ctx, "kube-controller-manager", func(ctx context.Context) error {
		return controllermanager.Run(ctx, config.Complete())
	})
	return nil
}

func (c *Cluster) startScheduler(ctx context.Context) error {
	opts := scheduleroptions.NewOptions()
	if err := parse(*opts.Flags, []string{
		"--kubeconfig=" + c.kubeconfigFor(pki.Scheduler),
		"--leader-elect=false",
		"--secure-port=0",
		"--profiling=false",
	}); err != nil {
		return fmt.Errorf("kube-scheduler's flags: %w", err)
	}
	c.run(ctx, "kube-scheduler", func(ctx context.Context) error {
		config, instance, err := scheduler.Setup(ctx, opts)
		if err != nil {
			return err
		}
		return scheduler.Run(ctx, config, instance)
	})
	return nil
}
