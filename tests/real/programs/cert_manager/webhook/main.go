// cert-manager's webhook, with the configuration file that is given: the module has the server and the defaults of its
// configuration, but not the main package.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/cert-manager/cert-manager/internal/webhook"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
	loader "github.com/cert-manager/cert-manager/pkg/util/configfile"
	"github.com/cert-manager/cert-manager/pkg/util/feature"
	"github.com/cert-manager/cert-manager/pkg/webhook/configfile"
)

func main() {
	file := configfile.New()
	from, err := loader.NewConfigurationFSLoader(nil, os.Args[1])
	if err == nil {
		err = from.Load(file)
	}
	if err != nil {
		log.Fatal(err)
	}
	logf.InitLogs()
	if err := logf.ValidateAndApply(&file.Config.Logging); err != nil {
		log.Fatal(err)
	}
	if err := feature.DefaultMutableFeatureGate.SetFromMap(file.Config.FeatureGates); err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx = logf.NewContext(ctx, logf.Log, "webhook")
	server, err := webhook.NewCertManagerWebhookServer(logf.Log, *file.Config)
	if err == nil {
		err = server.Run(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}
}
