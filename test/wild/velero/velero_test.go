package velero

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	velero "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/controller"
	"github.com/vmware-tanzu/velero/pkg/metrics"
	"github.com/vmware-tanzu/velero/pkg/persistence"
	"github.com/vmware-tanzu/velero/pkg/plugin/clientmgmt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/test/wild"
)

// logger is silent.
func logger() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

// pluginsOf returns what makes the plugins of a process, and Velero's own layer over them.
func pluginsOf(env *fault.Env) (func(logrus.FieldLogger) clientmgmt.Manager, persistence.ObjectBackupStoreGetter) {
	return func(logrus.FieldLogger) clientmgmt.Manager { return plugins{env: env} }, persistence.NewObjectBackupStoreGetter(nil)
}

// deletions is the part of Velero's server that deletes backups.
func deletions(mgr ctrl.Manager, env *fault.Env) error {
	manager, stores := pluginsOf(env)
	return errors.Join(
		controller.NewGCReconciler(logger(), mgr.GetClient(), 0).SetupWithManager(mgr),
		controller.NewBackupDeletionReconciler(logger(), mgr.GetClient(), controller.NewBackupTracker(), nil, metrics.NewServerMetrics(), nil,
			manager, stores, nil, nil).SetupWithManager(mgr),
	)
}

// downloads is the part of it that signs URLs of files.
func downloads(mgr ctrl.Manager, env *fault.Env) error {
	manager, stores := pluginsOf(env)
	return controller.NewDownloadRequestReconciler(mgr.GetClient(), clock.RealClock{}, manager, stores, logger(), nil, nil).SetupWithManager(mgr)
}

func location() *velero.BackupStorageLocation {
	return &velero.BackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Name: "store"}, Spec: velero.BackupStorageLocationSpec{
		Provider: "memory", StorageType: velero.StorageType{ObjectStorage: &velero.ObjectStorageLocation{Bucket: "bucket"}},
	}, Status: velero.BackupStorageLocationStatus{Phase: velero.BackupStorageLocationPhaseAvailable}}
}

func backup(name string) *velero.Backup {
	return &velero.Backup{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: velero.BackupSpec{StorageLocation: "store"},
		Status: velero.BackupStatus{Phase: velero.BackupPhaseCompleted},
	}
}

// finished creates a Backup with its files.
func finished(b *velero.Backup) fault.Step {
	step := fault.Create(b)
	create := step.Do
	step.Do = func(ctx context.Context, w *fault.World) error {
		return errors.Join(w.ExternalAPI.(*bucket).upload(b.Name), create(ctx, w))
	}
	return step
}

// play explores a scenario with an empty bucket.
func play(t *testing.T, s fault.Scenario, atLeast int, known ...wild.Bug) {
	s.Operator.CRDs, s.Operator.AddToScheme = fault.Module(t, "github.com/vmware-tanzu/velero", "config/crd/v1/bases"), velero.AddToScheme
	s.ExternalAPI = func() fault.ExternalAPI { return &bucket{files: map[string]string{}} }
	wild.Play(t, s, atLeast, known...)
}

func TestDeletions(t *testing.T) {
	daily, old := backup("daily"), backup("old")
	old.Status.Expiration = &metav1.Time{Time: time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)}
	remove := &velero.DeleteBackupRequest{ObjectMeta: metav1.ObjectMeta{Name: "remove"}, Spec: velero.DeleteBackupRequestSpec{BackupName: "daily"}}
	play(t, fault.Scenario{
		Name:     "deletions",
		Operator: fault.Operator{SetUp: deletions},
		Steps: []fault.Step{
			fault.Create(location()),
			finished(old).Gone(old),
			finished(daily),
			fault.Create(remove).Gone(daily),
		},
		Races: []fault.Step{fault.Delete(remove), fault.Recreate(remove)},
		// A request that failed or was interrupted is deleted after 24 hours, which is checked once an hour.
		Patience: 26 * time.Hour,
	}, 100,
		wild.Bug{Invariant: fault.I1, Says: "Backup default/daily exists, which it does not without", Why: "a deletion that is interrupted is not taken up again"},
		wild.Bug{Invariant: fault.I10, Says: "backups.velero.io default/old was deleted without a UID precondition", Then: "was deleted without a UID precondition", Why: "a Backup or a request of the same name is deleted, too"},
	)
}

func TestDownloads(t *testing.T) {
	daily := backup("daily")
	url := &velero.DownloadRequest{ObjectMeta: metav1.ObjectMeta{Name: "url"}, Spec: velero.DownloadRequestSpec{
		Target: velero.DownloadTarget{Kind: velero.DownloadTargetKindBackupContents, Name: "daily"},
	}}
	play(t, fault.Scenario{
		Name:     "downloads",
		Operator: fault.Operator{SetUp: downloads},
		Steps: []fault.Step{
			fault.Create(location()),
			finished(daily),
			fault.Create(url).Expecting(func(ctx context.Context, w *fault.World) error {
				var signed velero.DownloadRequest
				err := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "url"}, &signed)
				if err == nil && signed.Status.DownloadURL != "https://bucket/backups/daily/daily.tar.gz" {
					err = fmt.Errorf("its URL is %q", signed.Status.DownloadURL)
				}
				return err
			}),
		},
		Races: []fault.Step{fault.Delete(url), fault.Recreate(url)},
	}, 40,
		wild.Bug{Invariant: fault.I10, Says: "default/url was deleted without a UID precondition", Why: "an expired request is deleted by its name"},
	)
}
