import { test } from 'tap'
import { CLUSTERS, engineCommands, findEngine } from './engine.mjs'

const build = {
  file: '/src/images/Dockerfile',
  ignoreFile: '/src/images/Dockerfile.dockerignore',
  context: '/src',
  name: 'docker.io/tutti/step:0.1.0',
  target: 'step',
  noCache: true,
  platform: 'linux/arm64',
  args: { BASE: 'base:1', APT_PACKAGES: '' },
  mounts: [{ source: '/host/npmrc', target: '/usr/local/etc/npmrc' }],
}

/** A machine on which these programs work. */
const works = (names) => (command) => (names.includes(command) ? undefined : 'not in PATH')

await test('the first engine that works is taken', async (t) => {
  t.equal(findEngine({ probe: works(['docker', 'buildah']) }), 'docker')
  t.equal(findEngine({ probe: works(['buildah']) }), 'buildah')
  t.equal(findEngine({ probe: works(['docker', 'buildah']), named: 'buildah' }), 'buildah')
})

await test('without an engine the error has the reason for each', async (t) => {
  const reasons = { docker: 'no daemon', buildah: 'not in PATH' }
  t.throws(() => findEngine({ probe: (command) => reasons[command] }), {
    message: /docker: no daemon\n  buildah: not in PATH\n.*apt-get install buildah/,
  })
  t.throws(() => findEngine({ named: 'docker', probe: () => 'no daemon' }), {
    message: /no daemon/,
  })
  t.throws(() => findEngine({ named: 'no-such-engine', probe: undefined }), {
    message: /no-such-engine: not in PATH/,
  })
})

await test('both build a target; buildah in a store of its own, with the files of the machine', async (t) => {
  const wanted =
    '--target=step --no-cache --platform=linux/arm64 --build-arg=BASE=base:1 --build-arg=APT_PACKAGES= /src'
  const commandOf = (name) =>
    engineCommands(name, { store: '/s', isRoot: true }).build(build).join(' ')
  t.match(commandOf('docker'), `docker build --file=${build.file} --tag=${build.name} ${wanted}`)
  const command = commandOf('buildah')
  t.match(command, /^buildah --root \/s\/root --runroot \/s\/run build --isolation chroot/)
  t.match(command, '--volume /host/npmrc:/usr/local/etc/npmrc:ro ')
  t.match(command, wanted)
})

await test('archives go into clusters by their own programs', async (t) => {
  const archive = '/o/step.tar'
  t.same(CLUSTERS.k3s({ archive }), ['k3s', 'ctr', 'images', 'import', archive])
  const kind = CLUSTERS.kind({ archive, kindName: 'dev' })
  t.same(kind, ['kind', 'load', 'image-archive', archive, '--name', 'dev'])
})
