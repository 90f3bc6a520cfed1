import { test } from 'tap'
import { findPerfAnalyzer } from './perf-analyzer.mjs'

await test('a perf_analyzer that is named is taken', async (t) => {
  t.same(await findPerfAnalyzer('none', { env: { TUTTI_PERF_ANALYZER: '/a/perf_analyzer' } }), {
    TUTTI_PERF_ANALYZER: '/a/perf_analyzer',
  })
})

await test('a machine for which there is none says so', async (t) => {
  const { TUTTI_PERF_ANALYZER_MISSING: reason } = await findPerfAnalyzer('none', {
    env: {},
    platform: 'darwin-arm64',
  })
  t.equal(reason, 'there is no perf_analyzer: the wheel is for linux-x64, and this is darwin-arm64')
})
