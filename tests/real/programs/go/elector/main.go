// A candidate for a Lease, by client-go: prints when it leads, when it stops, and whom it sees leading.
//
// Usage: elector NAMESPACE LEASE IDENTITY. SIGTERM makes it give the Lease back and end.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"konverge.invalid/real/steps"
)

func say(message ...any) { fmt.Println(append([]any{time.Now().UnixMicro()}, message...)...) }

func main() {
	namespace, name, identity := os.Args[1], os.Args[2], os.Args[3]
	config := steps.Got(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")))
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: name, Namespace: namespace},
		Client:     kubernetes.NewForConfigOrDie(config).CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		say("stopping") // before the Lease is given back: from then on another may lead
		cancel()
	}()
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, ReleaseOnCancel: true,
		LeaseDuration: 8 * time.Second, RenewDeadline: 6 * time.Second, RetryPeriod: 500 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { say("leading") },
			OnStoppedLeading: func() { say("stopped") },
			OnNewLeader:      func(leader string) { say("leader", leader) },
		},
	})
}
