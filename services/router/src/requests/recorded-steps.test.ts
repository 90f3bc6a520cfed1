import type { StepSpan } from '@tutti/telemetry'
import t from 'tap'
import { openGraphs, WHEN } from '../testing/graph-rig.ts'

await t.test('spans say what was done around each step, and metrics count it', async (t) => {
  const { ask, counts } = await openGraphs()
  const rows = async (...asked: Parameters<typeof ask>) => {
    const spans = await ask(...asked)
    return spans.map(
      ({ step: name, startMs, endMs, queueMs, computeMs, depth, model, ...rest }) => {
        t.ok(startMs <= endMs && queueMs + computeMs >= 0 && depth > 0 && model !== '')
        return [name, rest]
      },
    )
  }
  const plain = { waitsFor: [], reason: '' }
  t.same(await rows('conditions', [1]), [
    ['small', plain],
    [
      'large',
      {
        waitsFor: ['small'],
        reason: '',
        passed: 'skipped',
        why: WHEN,
      },
    ],
    ['after', { waitsFor: ['large'], reason: '', passed: 'skipped', why: "input 'X' is absent" }],
    ['last', { waitsFor: ['after', 'small'], reason: '' }],
  ])
  t.same(await rows('items', [1, 13, 3, 4, 5]), [
    [
      'read',
      {
        ...plain,
        counts: { items: 5, itemCalls: 3, failedItems: 2 },
        itemReason: 'ENGINE_FAILED',
      },
    ],
  ])
  t.same(await rows('broken', [1, 2, 13, 4, 5]), [
    [
      'read',
      {
        waitsFor: [],
        reason: 'ENGINE_FAILED',
        counts: { items: 5, itemCalls: 2, failedItems: 2 },
        itemReason: 'ENGINE_FAILED',
      },
    ],
  ])
  t.same(await rows('retried', [1]), [['flaky', { ...plain, counts: { retried: 2 } }]])
  const failed = { waitsFor: [], reason: 'ENGINE_FAILED' }
  t.same(await rows('fallback', [1]), [
    ['first', failed],
    ['first', { waitsFor: ['first'], reason: '', isFallback: true }],
    ['second', { waitsFor: ['first'], reason: '' }],
  ])
  t.same(
    (await ask('behind', [1])).map(({ waitsFor }) => waitsFor),
    [[], ['before'], ['before', 'first']],
  )
  const defaulted = ['first', { waitsFor: ['first'], reason: '', passed: 'defaulted' }]
  t.same(await rows('default', [1]), [['first', failed], defaulted])
  t.same(await rows('slow', [1]), [['first', { ...failed, reason: 'STEP_TIMEOUT' }], defaulted])
  t.same(
    new Set(await counts()),
    new Set([
      'conditions.large skips 1',
      'conditions.after skips 1',
      'items.read items 5',
      'items.read item_calls 3',
      'items.read failed_items 2',
      'broken.read items 5',
      'broken.read item_calls 2',
      'broken.read failed_items 2',
      'retried.flaky retries 2',
      'fallback.first fallbacks 1',
      'behind.first fallbacks 1',
      'default.first defaults 1',
      'slow.first timeouts 1',
      'slow.first defaults 1',
    ]),
  )
})

const names = (spans: readonly StepSpan[]) =>
  spans.map(({ depth, step: name, within = '' }) => `${'-'.repeat(depth)}${name}${within}`)

await t.test('steps of an ensemble within say for which item or iteration they ran', async (t) => {
  const { ask, counts } = await openGraphs()
  const nested = await ask('nested', [1, 2])
  t.same(names(nested), ['-each', '--one[0]', '--two[0]', '--one[1]', '--two[1]'])
  t.same(nested[0]?.counts, { items: 2, itemCalls: 2, failedItems: 0 })
  t.same(names(await ask('pages', [1, 2])).slice(-3), ['--each[1]', '---one[1][0]', '---two[1][0]'])
  const again = await ask('again', [1])
  t.same(names(again).slice(-2), ['--one[3]', '--two[3]'])
  t.same(again[0]?.counts, { iterations: 3 })
  t.ok((await counts()).includes('again.again iterations 3'))
})
