package main

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"konverge.invalid/real/steps"
)

// manners says what greetings are like: the spaces around them are cut, and shouting is refused.
type manners struct{}

func (manners) Default(_ context.Context, greeting *Greeting) error {
	greeting.Spec.Text = strings.TrimSpace(greeting.Spec.Text)
	return nil
}

func (manners) ValidateCreate(_ context.Context, greeting *Greeting) (admission.Warnings, error) {
	if strings.HasSuffix(greeting.Spec.Text, "!") {
		return admission.Warnings{"be calm"}, fmt.Errorf("%q is shouted", greeting.Spec.Text)
	}
	return nil, nil
}

func (m manners) ValidateUpdate(ctx context.Context, _, greeting *Greeting) (admission.Warnings, error) {
	return m.ValidateCreate(ctx, greeting)
}

func (manners) ValidateDelete(context.Context, *Greeting) (admission.Warnings, error) {
	return nil, nil
}

func serveWebhooks(manager manager.Manager) {
	steps.Must(ctrl.NewWebhookManagedBy(manager, &Greeting{}).WithDefaulter(manners{}).WithValidator(manners{}).Complete(), "webhooks")
}

// webhooks are as in the manifests of an operator; envtest puts its own address in the place of the service.
func webhooks() envtest.WebhookInstallOptions {
	none := admissionregistrationv1.SideEffectClassNone
	config := func(path string) admissionregistrationv1.WebhookClientConfig {
		service := &admissionregistrationv1.ServiceReference{Name: "webhook", Namespace: "system", Path: &path}
		return admissionregistrationv1.WebhookClientConfig{Service: service}
	}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{"CREATE", "UPDATE"},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{groupVersion.Group}, APIVersions: []string{"v1"}, Resources: []string{"greetings"},
		},
	}}
	versions := []string{"v1"}
	return envtest.WebhookInstallOptions{
		MutatingWebhooks: []*admissionregistrationv1.MutatingWebhookConfiguration{{
			ObjectMeta: metav1.ObjectMeta{Name: "mutating"},
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: "mutate.go.konverge.dev", ClientConfig: config("/mutate-go-konverge-dev-v1-greeting"),
				Rules: rules, SideEffects: &none, AdmissionReviewVersions: versions,
			}},
		}},
		ValidatingWebhooks: []*admissionregistrationv1.ValidatingWebhookConfiguration{{
			ObjectMeta: metav1.ObjectMeta{Name: "validating"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "validate.go.konverge.dev", ClientConfig: config("/validate-go-konverge-dev-v1-greeting"),
				Rules: rules, SideEffects: &none, AdmissionReviewVersions: versions,
			}},
		}},
	}
}
