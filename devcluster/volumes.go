package devcluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/volume"
)

// provisioner is the name of the simulated storage in StorageClasses. Only for
// names with this prefix does the binder remove its finalizer from a volume
// whose reclaim policy becomes Retain.
const provisioner = "kubernetes.io/simulated"

// volumes runs the binder of kube-controller-manager with simulated storage. It
// binds claims to volumes and reclaims volumes.
//
// The binder is not one of [controllers], because there it has the plugins of
// Kubernetes. Reclaiming a volume of type hostPath would then remove files of
// this machine.
func (s *simulation) volumes(ctx context.Context) (func(context.Context), error) {
	// How often Kubernetes looks for volumes for claims that wait for one.
	const syncPeriod = 15 * time.Second
	core := s.informers.Core().V1()
	binder, err := persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{
		KubeClient:                s.clients,
		SyncPeriod:                syncPeriod,
		VolumePlugins:             []volume.VolumePlugin{storage{}},
		VolumeInformer:            core.PersistentVolumes(),
		ClaimInformer:             core.PersistentVolumeClaims(),
		ClassInformer:             s.informers.Storage().V1().StorageClasses(),
		PodInformer:               core.Pods(),
		NodeInformer:              core.Nodes(),
		EnableDynamicProvisioning: true,
	})
	if err != nil {
		return nil, err
	}
	return binder.Run, nil
}

// storage is a volume plugin without storage. It provisions volumes for its
// StorageClasses, and reclaims volumes of all types. The methods that only a
// kubelet calls are missing: the embedded interface is nil.
type storage struct{ volume.VolumePlugin }

var (
	_ volume.ProvisionableVolumePlugin = storage{}
	_ volume.DeletableVolumePlugin     = storage{}
)

func (storage) Init(volume.VolumeHost) error { return nil }
func (storage) GetPluginName() string        { return provisioner }
func (storage) CanSupport(*volume.Spec) bool { return true }
func (storage) SupportsMountOption() bool    { return true }

func (storage) NewProvisioner(_ klog.Logger, o volume.VolumeOptions) (volume.Provisioner, error) {
	return provision(o), nil
}

func (storage) NewDeleter(klog.Logger, *volume.Spec) (volume.Deleter, error) { return deletion{}, nil }

// deletion is the deletion of a volume, of which nothing exists but its object.
type deletion struct{ volume.Deleter }

func (deletion) Delete() error { return nil }

// provision is the creation of a volume. All nodes can use it.
type provision volume.VolumeOptions

func (p provision) Provision(*corev1.Node, []corev1.TopologySelectorTerm) (*corev1.PersistentVolume, error) {
	claim := p.PVC.Spec
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: p.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: p.PersistentVolumeReclaimPolicy,
			AccessModes:                   claim.AccessModes,
			VolumeMode:                    claim.VolumeMode,
			MountOptions:                  p.MountOptions,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Resources.Requests[corev1.ResourceStorage]},
			// A volume needs a type. No kubelet ever looks at this path.
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/simulated/" + p.PVName, Type: new(corev1.HostPathDirectoryOrCreate)},
			},
		},
	}, nil
}

// growth lets provisioned volumes grow with their claims, at once and without a
// restart of pods. That a StorageClass allows it, admission has checked.
func (s *simulation) growth(context.Context) (func(context.Context), error) {
	claims := s.informers.Core().V1().PersistentVolumeClaims()
	volumes := s.informers.Core().V1().PersistentVolumes().Lister()
	f, err := follow(claims.Informer(), func(ctx context.Context, name cache.ObjectName) error {
		claim, err := claims.Lister().PersistentVolumeClaims(name.Namespace).Get(name.Name)
		if err != nil || !outgrown(claim) {
			return err
		}
		pv, err := volumes.Get(claim.Spec.VolumeName)
		if err != nil || pv.Annotations[storagehelpers.AnnDynamicallyProvisioned] != provisioner {
			return err
		}
		return s.grow(ctx, claim.DeepCopy(), pv.DeepCopy())
	})
	if err != nil {
		return nil, err
	}
	return f.run, nil
}

// outgrown reports whether a bound claim asks for more than it has. One without a capacity was not bound by the binder.
func outgrown(claim *corev1.PersistentVolumeClaim) bool {
	wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	has, known := claim.Status.Capacity[corev1.ResourceStorage]
	return claim.Status.Phase == corev1.ClaimBound && known && wanted.Cmp(has) > 0
}

// grow enlarges the volume first: a claim must not report what the volume lacks.
func (s *simulation) grow(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if wanted.Cmp(pv.Spec.Capacity[corev1.ResourceStorage]) > 0 {
		pv.Spec.Capacity[corev1.ResourceStorage] = wanted
		if _, err := s.clients.CoreV1().PersistentVolumes().Update(ctx, pv, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	claim.Status.Capacity[corev1.ResourceStorage] = wanted
	_, err := s.clients.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}
