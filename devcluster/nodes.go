package devcluster

import (
	"context"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	nodestages "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	podstages "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/controllers"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwokclient "sigs.k8s.io/kwok/pkg/utils/client"

	"github.com/trimtab-dev/trimtab/devcluster/internal/pki"
)

// startNodes creates the nodes and starts kwok, which simulates the kubelets of
// all nodes, including those that users create.
func (c *Cluster) startNodes(ctx context.Context) error {
	config, err := c.kwokConfig()
	if err != nil {
		return fmt.Errorf("kwok: %w", err)
	}
	controller, err := kwok.NewController(config)
	if err != nil {
		return fmt.Errorf("kwok: %w", err)
	}
	logger := kwoklog.NewLogger(c.log, slog.LevelWarn)
	c.run(ctx, "kwok", func(ctx context.Context) error {
		if err := controller.Start(kwoklog.NewContext(ctx, logger)); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
	return c.createNodes(ctx)
}

func (c *Cluster) kwokConfig() (kwok.Config, error) {
	stages, err := stages()
	if err != nil {
		return kwok.Config{}, err
	}
	clients, err := kwokclient.NewClientset("", c.kubeconfigFor(pki.Nodes))
	if err != nil {
		return kwok.Config{}, err
	}
	config, err := clients.ToRESTConfig()
	if err != nil {
		return kwok.Config{}, err
	}
	rest, err := rest.RESTClientFor(config)
	if err != nil {
		return kwok.Config{}, err
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return kwok.Config{}, err
	}
	dynamic, err := clients.ToDynamicClient()
	if err != nil {
		return kwok.Config{}, err
	}
	mapper, err := clients.ToRESTMapper()
	if err != nil {
		return kwok.Config{}, err
	}
	return kwok.Config{
		Clock:                      clock.RealClock{},
		RESTClient:                 rest,
		RESTMapper:                 mapper,
		TypedClient:                typed,
		DynamicClient:              dynamic,
		ImpersonatingTypedClient:   clients.ToImpersonatingTypedClient(),
		ImpersonatingDynamicClient: clients.ToImpersonatingDynamicClient(),
		ManageAllNodes:             true,
		LocalStages:                stages,
		CIDR:                       "10.244.0.1/16",
		NodeIP:                     "10.0.0.1",
		NodePlayStageParallelism:   1,
		PodPlayStageParallelism:    4,
		PodsOnNodeSyncParallelism:  1,
	}, nil
}

// stages define what happens to nodes and pods, without delay: nodes become
// Ready, pods Running, pods of Jobs Succeeded, and deleted pods are removed.
func stages() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	out := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, text := range []string{
		nodestages.DefaultNodeInit,
		podstages.DefaultPodReady, podstages.DefaultPodComplete, podstages.DefaultPodDelete,
	} {
		stage, err := kwokconfig.UnmarshalWithType[*internalversion.Stage](text)
		if err != nil {
			return nil, fmt.Errorf("stage: %w", err)
		}
		out[stage.Spec.ResourceRef] = append(out[stage.Spec.ResourceRef], stage)
	}
	return out, nil
}

func (c *Cluster) createNodes(ctx context.Context) error {
	clients, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	for i := range c.options.nodes() {
		node := node(i)
		_, err := clients.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create node %q: %w", node.Name, err)
		}
	}
	return nil
}

func node(i int) *corev1.Node {
	name := fmt.Sprintf("node-%d", i+1)
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("32"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("1000"),
		// Without it, no pod fits that requests some, as those of many charts do.
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: "amd64",
			},
		},
		Status: corev1.NodeStatus{Allocatable: resources, Capacity: resources},
	}
}
