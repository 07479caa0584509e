// cert-manager's controllers. The module has them, but not the main package, which is a module of its own that no proxy
// has. Those of Venafi's issuer are left out: what they need beside cert-manager is not free to download everywhere.
// So is cert-manager's configuration file, whose defaults name them.
package main

import (
	"context"
	"flag"
	"log"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/cert-manager/cert-manager/pkg/controller"
	_ "github.com/cert-manager/cert-manager/pkg/controller/acmechallenges"
	_ "github.com/cert-manager/cert-manager/pkg/controller/acmeorders"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/ingresses"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/acme"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/vault"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/metrics"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificatesigningrequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificatesigningrequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/acme"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/vault"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the server, and who asks it")
	namespace := flag.String("cluster-resource-namespace", "cert-manager", "where the Secrets of ClusterIssuers are")
	owned := flag.Bool("enable-certificate-owner-ref", false, "a Certificate owns its Secret")
	flag.Parse()
	logf.InitLogs()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx = logf.NewContext(ctx, logf.Log, "cert-manager")
	factory, err := controller.NewContextFactory(ctx, options(*kubeconfig, *namespace, *owned))
	if err == nil {
		err = lead(ctx, factory)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// options are cert-manager's defaults.
func options(kubeconfig, namespace string, owned bool) controller.ContextOptions {
	return controller.ContextOptions{
		Kubeconfig:         kubeconfig,
		KubernetesAPIQPS:   20,
		KubernetesAPIBurst: 50,
		IssuerOptions: controller.IssuerOptions{
			ClusterResourceNamespace:        namespace,
			ClusterIssuerAmbientCredentials: true,
		},
		IngressShimOptions: controller.IngressShimOptions{
			DefaultIssuerKind:                 "Issuer",
			DefaultIssuerGroup:                "cert-manager.io",
			DefaultAutoCertificateAnnotations: []string{"kubernetes.io/tls-acme"},
		},
		CertificateOptions: controller.CertificateOptions{
			EnableOwnerRef:                           owned,
			CopiedAnnotationPrefixes:                 []string{"*", "-kubectl.kubernetes.io/"},
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
		SchedulerOptions: controller.SchedulerOptions{MaxConcurrentChallenges: 60},
	}
}

// lead runs the controllers as long as the lease is ours, and gives it back in the end.
func lead(ctx context.Context, factory *controller.ContextFactory) error {
	built, err := factory.Build("leader-election")
	if err != nil {
		return err
	}
	lock, err := resourcelock.NewWithLabels(
		resourcelock.LeasesResourceLock, "kube-system", "cert-manager-controller",
		built.Client.CoreV1(), built.Client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: "cert-manager-controller", EventRecorder: built.Recorder},
		map[string]string{"app.kubernetes.io/managed-by": "cert-manager"},
	)
	if err != nil {
		return err
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   60 * time.Second,
		RenewDeadline:   40 * time.Second,
		RetryPeriod:     15 * time.Second,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				if err := control(ctx, factory); err != nil {
					log.Fatal(err)
				}
			},
			OnStoppedLeading: func() {
				if ctx.Err() == nil {
					log.Fatal("the lease is another's")
				}
			},
		},
	})
	return nil
}

func control(ctx context.Context, factory *controller.ContextFactory) error {
	built, err := factory.Build()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, make := range controller.Known() {
		made, err := make(factory)
		if err != nil {
			return err
		}
		group.Go(func() error { return made.Run(5, ctx) })
	}
	built.SharedInformerFactory.Start(ctx.Done())
	built.KubeSharedInformerFactory.Start(ctx.Done())
	built.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	return group.Wait()
}
