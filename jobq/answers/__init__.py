"""Why a job has not run, or not finished: facts as the database has them at one moment, and a pure decision."""
