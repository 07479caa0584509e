# kubeclient, as an operator of Ruby uses it: the server and the credentials are those of KUBECONFIG.
require 'kubeclient'

SPACE = "ruby-#{Process.pid}".freeze
GROUP = 'ruby.konverge.dev'.freeze
PLURAL = "things#{Process.pid}".freeze

CONTEXT = Kubeclient::Config.read(ENV.fetch('KUBECONFIG')).context

def client(path, version)
  options = { ssl_options: CONTEXT.ssl_options, auth_options: CONTEXT.auth_options, timeouts: { read: 60 } }
  Kubeclient::Client.new("#{CONTEXT.api_endpoint}#{path}", version, **options)
end

def expect(what, wanted, got)
  abort("#{what}: wanted #{wanted.inspect}, got #{got.inspect}") unless wanted == got
end

def ok(step)
  puts "ok #{step}"
  $stdout.flush
end

def config_map(name, data, labels = {})
  Kubeclient::Resource.new(metadata: { name: name, namespace: SPACE, labels: labels }, data: data)
end

# The server has this object at once for a client that made it, and for a definition only after a moment.
def until_served
  60.times do
    return yield
  rescue Kubeclient::ResourceNotFoundError, Kubeclient::HttpError
    sleep 0.5
  end
  yield
end

core = client('/api', 'v1')
core.create_namespace(Kubeclient::Resource.new(metadata: { name: SPACE }))

5.times { |number| core.create_config_map(config_map("c#{number}", { n: number.to_s }, app: number.even? ? 'even' : 'odd')) }
even = core.get_config_maps(namespace: SPACE, label_selector: 'app=even')
expect('selected', %w[c0 c2 c4], even.map { |each| each.metadata.name })
names = []
token = nil
loop do
  page = core.get_config_maps(namespace: SPACE, limit: 2, continue: token, label_selector: 'app')
  names += page.map { |each| each.metadata.name }
  token = page.continue
  break if page.last?
end
expect('in pages', %w[c0 c1 c2 c3 c4], names)
ok 'lists'

one = core.get_config_map('c1', SPACE)
stale = one.metadata.resourceVersion
one.data.n = 'updated'
core.update_config_map(one)
one.metadata.resourceVersion = stale
begin
  core.update_config_map(one)
  abort('an update of an old version was taken')
rescue Kubeclient::HttpError => e
  expect('code of a conflict', 409, e.error_code)
end
expect('updated', 'updated', core.get_config_map('c1', SPACE).data.n)
ok 'conflict'

core.patch_config_map('c1', { data: { strategic: '1' } }, SPACE)
core.merge_patch_config_map('c1', { data: { n: nil, merged: '2' } }, SPACE)
core.json_patch_config_map('c1', [{ op: 'add', path: '/data/json', value: '3' }], SPACE)
expect('patched', { strategic: '1', merged: '2', json: '3' }, core.get_config_map('c1', SPACE).data.to_h)
ok 'patches'

begin
  core.get_config_map('none', SPACE)
  abort('there is no such object')
rescue Kubeclient::ResourceNotFoundError => e
  expect('message', 'configmaps "none" not found', e.message[/configmaps "none" not found/])
end
ok 'missing'

extensions = client('/apis/apiextensions.k8s.io', 'v1')
schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
definition = {
  metadata: { name: "#{PLURAL}.#{GROUP}" },
  spec: {
    group: GROUP, scope: 'Namespaced', names: { plural: PLURAL, kind: 'Thing' },
    versions: [{ name: 'v1', served: true, storage: true, schema: schema, subresources: { status: {} } }]
  }
}
extensions.create_custom_resource_definition(Kubeclient::Resource.new(definition))
thing = Kubeclient::Resource.new(metadata: { name: 'a', namespace: SPACE }, spec: { size: 1 })
things = until_served do
  fresh = client("/apis/#{GROUP}", 'v1') # it learns which kinds there are once
  fresh.create_entity('Thing', PLURAL, thing)
  fresh
end
version = things.get_entities('Thing', PLURAL, namespace: SPACE).resourceVersion
watch = things.watch_entities(PLURAL, namespace: SPACE, resource_version: version)
writer = Thread.new do
  things.patch_entity(PLURAL, 'a', { spec: { size: 2 } }, 'merge-patch', SPACE)
  things.delete_entity(PLURAL, 'a', SPACE)
end
seen = []
watch.each do |notice|
  seen << [notice.type, notice.object.spec.size]
  watch.finish if notice.type == 'DELETED'
end
writer.join
expect('watched', [['MODIFIED', 2], ['DELETED', 2]], seen)
extensions.delete_custom_resource_definition("#{PLURAL}.#{GROUP}")
ok 'watch'

core.delete_namespace(SPACE)
ok 'delete'
