package devcluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/trimtab-dev/trimtab/devcluster/internal/damage"
	"github.com/trimtab-dev/trimtab/devcluster/internal/folder"
)

// openSockets chooses a folder for etcd's sockets. etcd listens on sockets in a
// folder that only its owner can access, because through a TCP port every local
// user could bypass RBAC. The path of a socket is limited, to 103 bytes on some
// systems, so if the path of the data folder is too long, a folder in /tmp is
// used.
func (c *Cluster) openSockets(context.Context) error {
	const limit, short = 103, "/tmp"
	c.sockets = c.folder
	if len(c.etcdSocket().Path) <= limit {
		return nil
	}
	var err error
	if c.sockets, err = folder.Temp(short); err != nil {
		return fmt.Errorf("folder for etcd's sockets, for which the path %q is too long: %w", c.folder.Path(), err)
	}
	c.onStop(c.sockets.Close)
	return nil
}

func (c *Cluster) etcdSocket() *url.URL {
	return &url.URL{Scheme: "unix", Path: c.sockets.Join("etcd.sock")}
}

func (c *Cluster) startEtcd(ctx context.Context) error {
	if err := damage.Check(c.folder.Join("etcd")); err != nil {
		return c.damaged(err)
	}
	etcd, err := c.openEtcd()
	if err != nil {
		return c.damaged(fmt.Errorf("etcd: %w", err))
	}
	c.run(ctx, "etcd", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			etcd.Close()
			return nil
		case err := <-etcd.Err():
			return err
		case <-etcd.Server.StopNotify():
			return errors.New("it stopped; " + c.because())
		}
	})
	ctx, cancel := c.waiting(ctx, &lateError{what: "etcd"})
	defer cancel()
	select {
	case <-etcd.Server.ReadyNotify():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// openEtcd opens the data. etcd reports damage that damage.Check did not find by
// an error, by a panic, or by a log entry after which it would end the process.
func (c *Cluster) openEtcd() (*embed.Etcd, error) {
	type result struct {
		etcd *embed.Etcd
		err  error
	}
	results := make(chan result, 1)
	say := func(r result) {
		select {
		case results <- r:
		default: // the first one counts
		}
	}
	go func() {
		defer func() {
			if p := recover(); p != nil {
				say(result{err: fmt.Errorf("%v", p)})
			}
		}()
		etcd, err := embed.StartEtcd(c.etcdConfig(func(reason string) {
			say(result{err: errors.New(reason)})
			c.giveUp("etcd gave up: " + reason)
		}))
		say(result{etcd, err})
	}()
	r := <-results
	return r.etcd, r.err
}

func (c *Cluster) etcdConfig(fatal func(string)) *embed.Config {
	client := *c.etcdSocket()
	peer := url.URL{Scheme: "unix", Path: c.sockets.Join("peer.sock")}
	cfg := embed.NewConfig()
	cfg.Dir = c.folder.Join("etcd")
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.UnsafeNoFsync = c.folder.Temporary()
	// A single member elects itself and need not wait a second for others.
	cfg.TickMs, cfg.ElectionMs = 10, 100
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(c.etcdLogger(fatal))
	return cfg
}
