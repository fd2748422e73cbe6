"""${message}

Revision ${up_revision} follows ${down_revision | comma,n}. It spells out its own tables and imports nothing of jobq,
because it must mean the same when jobq has moved on.
"""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def schema() -> str:
    return op.get_context().opts.get("jobq_schema", "jobq")


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
