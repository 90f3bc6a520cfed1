/** An error that the user of a script can put right; its message is all that they need to see. */
export class SetupFailure extends Error {}

/**
 * Runs a script's main function: a SetupFailure ends it with its message and code 1.
 *
 * @param {() => Promise<number>} main - resolves with the exit code.
 */
export async function runScript(main) {
  try {
    process.exitCode = await main()
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error
    console.error(`\n${error.message}`)
    process.exitCode = 1
  }
}

/**
 * For tests: the variable `name` with what `ensure` gives, or `<name>_MISSING` with the reason why it cannot be had. A machine
 * without network tests everything else.
 */
export async function orMissing(name, ensure) {
  try {
    return { [name]: await ensure() }
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error
    return { [`${name}_MISSING`]: error.message.trim().split('\n').at(-1) }
  }
}
