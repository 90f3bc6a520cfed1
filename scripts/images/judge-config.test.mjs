import { test } from 'tap'
import { judgeConfig, USER } from './judge-config.mjs'

const NAMES = ['title', 'description', 'source', 'version', 'revision', 'base.name']
const Labels = Object.fromEntries(
  [...NAMES.map((name) => [name, '0.1.0']), ['licenses', 'Apache-2.0']].map(([name, value]) => [
    `org.opencontainers.image.${name}`,
    value,
  ]),
)
const config = { User: USER, Entrypoint: ['tutti-step'], Labels, Env: ['PATH=/bin', 'HOME=/tmp'] }
const wanted = { entrypoint: 'tutti-step', version: '0.1.0' }

await test('an image as it should be has no faults', async (t) => {
  t.same(judgeConfig({ config }, wanted), [])
})

await test('each fault is said', async (t) => {
  const cases = [
    [{ User: 'node' }, /the user is node, want 65532:65532/],
    [{ Entrypoint: ['/bin/sh', '-c', 'npm start'] }, /want \["tutti-step"\]/],
    [
      { Labels: { ...Labels, 'org.opencontainers.image.version': '9' } },
      /version is 9, want 0.1.0/,
    ],
    [{ Env: ['HTTPS_PROXY=http://proxy.example'] }, /the environment has HTTPS_PROXY/],
  ]
  for (const [changes, fault] of cases) {
    const faults = judgeConfig({ config: Object.assign({}, config, changes) }, wanted)
    t.equal(faults.length, 1)
    t.match(faults[0], fault)
  }
  t.equal(judgeConfig({ config: { ...config, Labels: undefined } }, wanted).length, 9)
})
