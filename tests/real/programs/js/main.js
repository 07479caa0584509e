// A user of the API by @kubernetes/client-node: apply, watch, patch, scale, wait, delete; an informer; a small operator.
// Each step prints `ok <step>`; the first failure ends the program.
import assert from 'node:assert/strict';
import * as k8s from '@kubernetes/client-node';

const namespace = 'js-client';
const group = 'js.konverge.dev';
const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);
const apps = config.makeApiClient(k8s.AppsV1Api);
const extensions = config.makeApiClient(k8s.ApiextensionsV1Api);
const customs = config.makeApiClient(k8s.CustomObjectsApi);
const objects = k8s.KubernetesObjectApi.makeApiClient(config);

const done = (step) => console.log('ok', step);
const refused = async (code, promise) => {
  const error = await promise.then(() => assert.fail(`${code} was expected`), (error) => error);
  assert.equal(error.code, code, String(error));
  return error;
};

const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace },
  spec: {
    selector: { matchLabels: { app: 'web' } },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: { containers: [{ name: 'web', image: 'nginx' }] },
    },
  },
};
const text = { type: 'object', properties: { text: { type: 'string' } } };
const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `greetings.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { kind: 'Greeting', plural: 'greetings' },
    versions: [{
      name: 'v1', served: true, storage: true, subresources: { status: {} },
      schema: { openAPIV3Schema: { type: 'object', properties: { spec: text, status: text } } },
    }],
  },
};

async function workloads() {
  await core.createNamespace({ body: { metadata: { name: namespace } } });
  await objects.create(deployment);
  const patch = { ...deployment, metadata: { name: 'web', namespace, labels: { tier: 'front' } } };
  await objects.patch(patch, undefined, undefined, 'js', true, k8s.PatchStrategy.ServerSideApply);
  const found = await apps.readNamespacedDeployment({ name: 'web', namespace });
  assert.equal(found.metadata.labels.tier, 'front');
  assert.equal(found.spec.replicas, 1);
  done('apply');
  const body = [{ op: 'replace', path: '/spec/replicas', value: 4 }];
  await apps.patchNamespacedDeploymentScale({ name: 'web', namespace, body });
  assert.equal((await apps.readNamespacedDeploymentScale({ name: 'web', namespace })).spec.replicas, 4);
  done('scale');
  await apps.replaceNamespacedDeployment({ name: 'web', namespace, body: { ...found, metadata: { ...found.metadata, labels: {} } } })
    .then(() => assert.fail('a conflict was expected'), (error) => assert.equal(error.code, 409));
  done('conflict');
}

// The operator: an informer reports Greetings, and each gets its status.
async function operate() {
  await extensions.createCustomResourceDefinition({ body: definition });
  for (;;) {
    const found = await extensions.readCustomResourceDefinition({ name: definition.metadata.name });
    if (found.status?.conditions?.some((condition) => condition.type === 'Established' && condition.status === 'True')) break;
  }
  const where = { group, version: 'v1', namespace, plural: 'greetings' };
  // Even then a real server answers 404 or 429 ("storage is (re)initializing") for a moment; this client does not try again.
  for (;;) {
    const served = await customs.listNamespacedCustomObject(where).then(() => true, (error) => {
      if (![404, 429].includes(error.code)) throw error;
      return false;
    });
    if (served) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const informer = k8s.makeInformer(config, `/apis/${group}/v1/namespaces/${namespace}/greetings`,
    () => customs.listNamespacedCustomObject(where));
  const events = [];
  const ended = new Promise((resolve, reject) => {
    informer.on('add', async (greeting) => {
      events.push('add');
      const status = [{ op: 'add', path: '/status', value: { text: greeting.spec.text } }];
      await customs.patchNamespacedCustomObjectStatus({ ...where, name: greeting.metadata.name, body: status }).catch(reject);
    });
    informer.on('update', async (greeting) => {
      events.push(`update ${greeting.status.text}`);
      await customs.deleteNamespacedCustomObject({ ...where, name: greeting.metadata.name }).catch(reject);
    });
    informer.on('delete', () => resolve(events.push('delete')));
    informer.on('error', reject);
  });
  await informer.start();
  await customs.createNamespacedCustomObject({
    ...where, body: { apiVersion: `${group}/v1`, kind: 'Greeting', metadata: { name: 'hello' }, spec: { text: 'Hello' } },
  });
  await ended;
  await informer.stop();
  assert.deepEqual(events, ['add', 'update Hello', 'delete']);
  done('operator');
}

async function watching() {
  const made = await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'm' } } });
  const seen = [];
  const watch = new k8s.Watch(config);
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  await new Promise((resolve, reject) => {
    const options = { resourceVersion: made.metadata.resourceVersion, allowWatchBookmarks: true };
    watch.watch(path, options, (type, object) => {
      seen.push([type, object.metadata.name]);
      if (type === 'DELETED') resolve();
    }, (error) => (error ? reject(error) : resolve())).then(async (controller) => {
      await core.patchNamespacedConfigMap({ name: 'm', namespace, body: [{ op: 'add', path: '/data', value: { a: '1' } }] });
      await core.deleteNamespacedConfigMap({ name: 'm', namespace });
      return controller;
    }).catch(reject);
  });
  assert.deepEqual(seen, [['MODIFIED', 'm'], ['DELETED', 'm']]);
  done('watch');
}

async function remove() {
  await apps.deleteNamespacedDeployment({ name: 'web', namespace });
  await refused(404, apps.readNamespacedDeployment({ name: 'web', namespace }));
  const error = await refused(422, core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'Bad Name' } } }));
  assert.match(String(error.body), /a lowercase RFC 1123 subdomain/);
  done('delete');
}

await workloads();
await operate();
await watching();
await remove();
process.exit(0);
