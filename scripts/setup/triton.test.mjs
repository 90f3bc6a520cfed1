import { test } from 'tap'
import { findTriton } from './triton.mjs'

await test('a Triton that is named is taken', async (t) => {
  t.same(await findTriton('none', { env: { TUTTI_TRITON: '/a/tritonserver' } }), {
    TUTTI_TRITON: '/a/tritonserver',
  })
})

await test('a machine for which there is none says so', async (t) => {
  const { TUTTI_TRITON_MISSING: reason } = await findTriton('none', {
    env: {},
    platform: 'darwin-arm64',
  })
  t.equal(reason, 'there is no Triton: the wheel is for linux-x64, and this is darwin-arm64')
})
