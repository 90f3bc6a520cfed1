import { ServeError } from '@tutti/errors'
import t from 'tap'
import {
  LOADER_CONFIG as CONFIG,
  LOADER_JSON_CONFIG as JSON_CONFIG,
  openLoaderRig as open,
  revisionOf,
  sentPinned as sent,
  untilSo as until,
} from '../testing/loader-rig.ts'

await t.test('versions that fail are listed beside those that are served', async (t) => {
  const { step, engine, write, states } = await open(t, { m: { 1: { f: 'a' }, 2: { f: 'a' } } })
  const policy = (versions: string): Promise<void> =>
    write('m/config.pbtxt', CONFIG.replace('all { }', `specific { versions: [ ${versions} ] }`))
  await policy('1')
  await step.models.load('m')
  await policy('1, 2')
  let listed = 0
  step.onChange(() => (listed += 1))
  for (const why of ['bad', 'worse']) {
    engine.failures.set('m/2', new ServeError('MODEL_LOAD_FAILED', why))
    await t.rejects(step.models.load('m'))
    t.same(states(), ['1: READY', `2: UNAVAILABLE Internal: ${why}`])
  }
  t.equal(listed, 2, 'routers learn of each')
  t.equal(await sent(step, revisionOf(step)), 'OK')
  t.comment('one that is not wanted any more is not listed')
  await policy('1')
  await step.models.load('m')
  t.same(states(), ['1: READY'])
  await policy('1, 2')
  await t.rejects(step.models.load('m'))
  engine.failures.delete('m/2')
  await step.models.load('m')
  t.same(states(), ['1: READY', '2: READY'])
  t.comment('of versions of a request, those of the last one are listed')
  for (const version of [7, 8]) {
    engine.failures.set(`m/${version}`, new ServeError('MODEL_LOAD_FAILED', 'bad'))
    const files = new Map([[`${version}/f`, Buffer.from('x')]])
    await t.rejects(step.models.load('m', { config: JSON_CONFIG, files }))
    t.same(states(), ['1: READY', '2: READY', `${version}: UNAVAILABLE Internal: bad`])
  }
  step.models.unload('m')
  await until(() => states().every((state) => !state.includes('UNLOADING')))
  t.same(
    states(),
    ['unloaded', 'unloaded', 'Internal: bad'].map(
      (why, i) => `${[1, 2, 8][i]}: UNAVAILABLE ${why}`,
    ),
  )
})
