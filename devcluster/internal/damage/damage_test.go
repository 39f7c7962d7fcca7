package damage_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/trimtab-dev/trimtab/devcluster/internal/damage"
)

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		why    string
		damage func(t *testing.T, log, db string)
		says   string // empty: no damage
	}{
		"nothing there yet": {
			why:    "the first start",
			damage: func(t *testing.T, log, db string) { remove(t, filepath.Dir(filepath.Dir(log))) },
		},
		"whole": {
			why:    "the usual restart",
			damage: func(*testing.T, string, string) {},
		},
		"torn log": {
			why:    "a machine without power tears the last record, and etcd repairs that",
			damage: func(t *testing.T, log, _ string) { truncate(t, segment(t, log), 300) },
		},
		"empty database": {
			why:    "etcd was killed in its first moment",
			damage: func(t *testing.T, _, db string) { truncate(t, db, 0) },
		},
		"garbage in the log": {
			why:    "etcd panics",
			damage: func(t *testing.T, log, _ string) { overwrite(t, segment(t, log), 0, 64) },
			says:   "write-ahead log",
		},
		"no log": {
			why:    "etcd would wait for ever for a leader",
			damage: func(t *testing.T, log, _ string) { remove(t, log) },
			says:   "write-ahead log is missing",
		},
		"garbage at the head of the database": {
			why:    "etcd panics in a goroutine of its own",
			damage: func(t *testing.T, _, db string) { overwrite(t, db, 0, 2*os.Getpagesize()) },
			says:   "database",
		},
		"garbage in a page of the database": {
			why:    "etcd would find it at any later time, by a panic",
			damage: func(t *testing.T, _, db string) { overwrite(t, db, 3*os.Getpagesize(), 32*os.Getpagesize()) },
			says:   "database",
		},
		"truncated database": {
			why:    "reading it is a fault on mapped memory, which ends a Go process",
			damage: func(t *testing.T, _, db string) { truncate(t, db, int64(5*os.Getpagesize())) },
			says:   "database",
		},
		"a file instead of the folder": {
			why: "the message must not speak of a log",
			damage: func(t *testing.T, log, _ string) {
				dir := filepath.Dir(filepath.Dir(log))
				remove(t, dir)
				if err := os.WriteFile(dir, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			},
			says: "not a folder",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "etcd")
			log, db := filepath.Join(dir, "member", "wal"), filepath.Join(dir, "member", "snap", "db")
			fill(t, log, db)
			tc.damage(t, log, db)
			switch err := damage.Check(dir); {
			case tc.says == "" && err != nil:
				t.Errorf("error %q; %s", err, tc.why)
			case tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("error = %v, want one that says %q; %s", err, tc.says, tc.why)
			}
		})
	}
}

// fill writes data of the shape that etcd's has.
func fill(t *testing.T, log, db string) {
	t.Helper()
	for _, dir := range []string{filepath.Dir(log), filepath.Dir(db)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w, err := wal.Create(zap.NewNop(), log, []byte("member"))
	if err != nil {
		t.Fatal(err)
	}
	var entries []*raftpb.Entry
	for i := range uint64(20) {
		entries = append(entries, &raftpb.Entry{Term: new(uint64(1)), Index: new(i + 1), Data: bytes.Repeat([]byte("x"), 100)})
	}
	if err := w.Save(&raftpb.HardState{Term: new(uint64(1)), Commit: new(uint64(20))}, entries); err != nil {
		t.Fatal(err)
	}
	if err := w.SaveSnapshot(&walpb.Snapshot{Index: new(uint64(10)), Term: new(uint64(1)), ConfState: &raftpb.ConfState{}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := bbolt.Open(db, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("key"))
		if err != nil {
			return err
		}
		for i := range 300 {
			if err := b.Put([]byte{byte(i >> 8), byte(i)}, bytes.Repeat([]byte("v"), 400)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func segment(t *testing.T, log string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(log, "*.wal"))
	if err != nil || len(files) != 1 {
		t.Fatalf("segments of the log: %v, %v", files, err)
	}
	return files[0]
}

func overwrite(t *testing.T, path string, at, length int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xA5}, length), int64(at)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}
