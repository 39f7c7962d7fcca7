// Package damage checks etcd's data for damage before etcd opens it.
//
// etcd itself responds to damage with a panic in one of its goroutines, a fault
// on mapped memory, or by blocking forever. The program that embeds it cannot
// turn any of these into an error message.
package damage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
)

// Check reads all of etcd's data in dir and returns an error if it is damaged. A
// folder without data is valid: etcd fills it.
func Check(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%q is not a folder", dir)
	}
	log, db := filepath.Join(dir, "member", "wal"), filepath.Join(dir, "member", "snap", "db")
	if filled(db) && !there(log) {
		return errors.New("etcd's write-ahead log is missing")
	}
	if there(log) {
		if err := guard(func() error { return readLog(log) }); err != nil {
			return fmt.Errorf("etcd's write-ahead log: %w", err)
		}
	}
	if filled(db) {
		if err := guard(func() error { return readDatabase(db) }); err != nil {
			return fmt.Errorf("etcd's database: %w", err)
		}
	}
	return nil
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// filled reports whether the file contains anything. etcd creates an empty
// database first, which remains if it is killed immediately.
func filled(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

// guard turns a panic of read into an error, including a fault on mapped memory,
// which is the effect of a truncated file.
func guard(read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be read: %v", p)
		}
	}()
	return read()
}

func readLog(dir string) error {
	snapshots, err := wal.ValidSnapshotEntries(zap.NewNop(), dir)
	if err != nil {
		return err
	}
	if len(snapshots) == 0 {
		return errors.New("it has no beginning")
	}
	_, err = wal.Verify(zap.NewNop(), dir, snapshots[len(snapshots)-1])
	return err
}

// readDatabase reads every page, of keys and of values.
func readDatabase(path string) error {
	const patience = time.Second // for the lock, which no other process should hold
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: patience})
	if err != nil {
		return err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(_, value []byte) error {
				touch(value)
				return nil
			})
		})
	})
	return errors.Join(err, db.Close())
}

// touch reads a value, which is on overflow pages if it is long.
func touch(value []byte) (sum byte) {
	for _, b := range value {
		sum ^= b
	}
	return sum
}
