import { test } from 'tap'
import { parseOptions, USAGE } from './options.mjs'

const env = { XDG_CACHE_HOME: '/cache' }
const parse = (...argv) => parseOptions(argv, { version: '1.2.3', env })

await test('without flags the usual images are built and left in the cache folder', async (t) => {
  t.match(parse(), {
    names: ['operator', 'router', 'step', 'step-python', 'samples'],
    buildArgs: {},
    makesBase: false,
    noCache: false,
    registry: 'docker.io',
    tag: '1.2.3',
    out: '/cache/tutti/images',
  })
})

await test('--cuda builds the images for GPUs', async (t) => {
  t.same(parse('--cuda').names, ['step-cuda', 'step-python-cuda'])
  t.same(parse('--cuda', '--only=step-cuda').names, ['step-cuda'])
})

await test('flags are taken, and images are built once', async (t) => {
  const flags = ['--only=step', '--only', 'step-cuda', '--only', 'step', '--tag=test', '--load=k3s']
  const buildArgs = ['--build-arg=BASE=mine:1', '--build-arg', 'PIP_PACKAGES=a b=1']
  t.match(parse(...flags, ...buildArgs, '--registry=r.example:5000'), {
    names: ['step', 'step-cuda'],
    tag: 'test',
    cluster: 'k3s',
    buildArgs: { BASE: 'mine:1', PIP_PACKAGES: 'a b=1' },
    registry: 'r.example:5000',
  })
})

await test('what is not known is refused, with what is', async (t) => {
  const cases = [
    [['--only', 'steps'], /--only steps: want one of operator, router, step,/],
    [['--load', 'minikube'], /--load minikube: want one of kind, k3s/],
    [['--engine', 'podman'], /--engine podman: want one of docker, buildah/],
    [['--build-arg', 'BASE'], /--build-arg BASE: want NAME=VALUE/],
    [['--onyl', 'step'], /Unknown option '--onyl'/],
  ]
  for (const [argv, message] of cases) t.throws(() => parse(...argv), { message })
})

await test('every flag is in the usage', async (t) => {
  t.throws(() => parse('step'), { message: /usage: npm run images/ })
  for (const flag of [
    'only',
    'cuda',
    'make-base',
    'platform',
    'build-arg',
    'no-cache',
    'kind-name',
  ]) {
    t.match(USAGE, `--${flag} `)
  }
})
