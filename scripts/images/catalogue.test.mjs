import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { IMAGES, judgeSize, referenceOf, USUAL_IMAGES } from './catalogue.mjs'
import { USER } from './judge-config.mjs'

const root = join(dirname(fileURLToPath(import.meta.url)), '../..')
const textOf = (path) => readFileSync(join(root, path), 'utf8')
const { version } = JSON.parse(textOf('package.json'))

await test('images are named as the operator and the chart name them', async (t) => {
  const flags = textOf('operator/src/serving-flags.ts')
  const values = textOf('charts/tutti/values.yaml')
  for (const name of ['operator', 'router', 'step']) {
    t.equal(
      referenceOf(name, { registry: 'docker.io', tag: version }),
      `docker.io/tutti/${name}:${version}`,
    )
    t.match(values, `repository: tutti/${name}\n`)
    if (name !== 'operator') t.match(flags, `default: 'tutti/${name}:${version}'`)
  }
  t.match(textOf('charts/tutti/Chart.yaml'), `appVersion: ${version}\n`)
})

await test('the user of the images is that of the pods', async (t) => {
  const [user, group] = USER.split(':')
  t.match(textOf('charts/tutti/values.yaml'), `runAsUser: ${user}\n    runAsGroup: ${group}\n`)
  for (const file of ['model-deployment', 'router-deployment']) {
    t.match(
      textOf(`operator/src/resources/${file}.ts`),
      `const USER = ${user.replace('65', '65_')}`,
    )
  }
})

await test('every image is a target of the Dockerfile, with ARGs that it has', async (t) => {
  const dockerfile = textOf('images/Dockerfile')
  for (const { target, args = {} } of Object.values(IMAGES)) {
    t.match(dockerfile, new RegExp(`^FROM \\S+ AS ${target}$`, 'm'))
    for (const name of Object.keys(args)) t.match(dockerfile, new RegExp(`^ARG ${name}=`, 'm'))
  }
  t.same(USUAL_IMAGES, ['operator', 'router', 'step', 'step-python'])
})

await test('what is too large is said', async (t) => {
  t.equal(judgeSize('router', 99_900_000), undefined)
  t.equal(judgeSize('step', 150_000_000), undefined)
  t.match(
    judgeSize('operator', 100_100_000),
    /operator adds 100.1 MB above its base; at most 100.0/,
  )
  t.equal(judgeSize('step-python', 9e9), undefined, 'its libraries are what it is for')
})

await test('the programs become Node, under a process 1 that reaps, with flags that V8 has', async (t) => {
  const { stdout } = spawnSync(process.execPath, ['--v8-options'], { encoding: 'utf8' })
  for (const name of readdirSync(join(root, 'images/bin'))) {
    const script = textOf(`images/bin/${name}`)
    t.match(script, /^exec tini -s -- node /m, name)
    t.match(script, / \/app\/\S+\/dist\/main\.js "\$@"\n$/, name)
    const flags = script.match(/--[a-z][a-z-]+(?=[= ])/g) ?? []
    t.equal(flags.length, name === 'tutti-operator' ? 0 : 3, name)
    for (const flag of flags) t.match(stdout, `  ${flag} (`, flag)
  }
})
