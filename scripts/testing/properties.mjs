// Loaded before tests (--import): every property of fast-check takes its seed from TUTTI_SEED, and runs TUTTI_TEST_FACTOR times
// as often as its test says.
import { registerHooks } from 'node:module'

const wrapper = new URL('./seeded-fast-check.mjs', import.meta.url).href

registerHooks({
  resolve(specifier, context, nextResolve) {
    if (specifier !== 'fast-check' || context.parentURL === wrapper) {
      return nextResolve(specifier, context)
    }
    return { url: wrapper, shortCircuit: true }
  },
})
