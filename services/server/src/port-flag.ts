import { ServeError } from '@tutti/errors'

/** Starts a listener. @throws ServeError as `start` does; if it cannot listen, the text begins with the flag of the port. */
export async function namePortFlag<T>(listener: string, start: () => Promise<T>): Promise<T> {
  try {
    return await start()
  } catch (caught) {
    const error = ServeError.from(caught)
    throw error.reason === 'SETTING_INVALID' ? error.withPrefix(`--${listener}-port: `) : error
  }
}
